#include "tests/specs/language/key_reference.h"

#include <cstdlib>
#include <fstream>
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

TEST(ExperimentLanguagePage, TellsWhatEverySwitchOfAStackSays) {
  const std::string text = tests::file_text("docs/experiment-language.md");
  const std::string table = text.substr(0, text.find("## Keys"));
  for (const std::string& feature : all_names<StackFeature>())
    EXPECT_NE(table.find("`" + feature + "`"), std::string::npos) << feature;
}

}  // namespace
}  // namespace specs
