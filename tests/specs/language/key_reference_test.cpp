#include "tests/specs/language/key_reference.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "specs/language/section_keys.h"
#include "specs/language/stack_feature.h"
#include "tests/support/golden_file.h"

namespace specs {
namespace {

std::string reference_markdown() {
  Experiment experiment;
  experiment.model = starting_model();
  experiment.cluster.groups.resize(1);
  tests::KeyReference reference;
  visit_keys(reference, experiment);
  return reference.markdown();
}

TEST(ExperimentLanguagePage, ListsEveryKeyAsTheReaderHasIt) {
  constexpr const char* page = "docs/experiment-language.md";
  const std::string begin = "<!-- keys: written by this page's test -->\n\n";
  const std::string end = "<!-- end of keys -->\n";
  const std::string text = tests::file_text(page);
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  tests::expect_golden(page, text.substr(0, from + begin.size()) + reference_markdown() + text.substr(to));
}

/// "section.key" of the reader's tables.
std::set<std::string> known_keys() {
  std::set<std::string> keys;
  std::istringstream lines(reference_markdown());
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, std::regex("^### `([^`]+)`")))
      section = found[1];
    else if (std::regex_search(line, found, std::regex("^\\| `([a-z_0-9]+)`")))
      keys.insert(section + "." + found[1].str());
  }
  return keys;
}

TEST(FromOtherToolsPage, NamesKeysThatTheReaderHas) {
  const std::set<std::string> keys = known_keys();
  ASSERT_TRUE(keys.contains("model.mixture.top_k"));
  std::istringstream lines(tests::file_text("docs/from-other-tools.md"));
  const std::regex key("`((model|training|search)\\.[a-z_.]+)");
  int named = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) continue;
    const std::string right = line.substr(line.find('|', 1));
    for (std::sregex_iterator at(right.begin(), right.end(), key); at != std::sregex_iterator();
         ++at, ++named)
      EXPECT_TRUE(keys.contains((*at)[1])) << line;
  }
  EXPECT_GT(named, 50);
}

TEST(ExperimentLanguagePage, TellsWhatEverySwitchOfAStackSays) {
  const std::string text = tests::file_text("docs/experiment-language.md");
  const std::string table = text.substr(0, text.find("## Keys"));
  for (const std::string& feature : all_names<StackFeature>())
    EXPECT_NE(table.find("`" + feature + "`"), std::string::npos) << feature;
}

}  // namespace
}  // namespace specs
