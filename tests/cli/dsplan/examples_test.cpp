// Every example with its expected answer: the comment at its head, and under each command line of it
// ("#   dsplan …") what that prints. UPDATE_GOLDENS=1 writes the answers anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/dsplan/application.h"
#include "tests/cli/dsplan/command_line.h"
#include "tests/support/golden_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator("examples"))
    if (entry.path().extension() == ".toml")
      names.push_back(entry.path().lexically_relative("examples").replace_extension().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A folder where examples are run: it sees them, and what they write stays in it.
class WorkFolder {
 public:
  WorkFolder() : before_(fs::current_path()) {
    fs::create_directory_symlink(before_ / "examples", folder_.path() / "examples");
    fs::current_path(folder_.path());
    // No measured rates of this machine.
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  ~WorkFolder() {
    fs::current_path(before_);
    unsetenv("XDG_CACHE_HOME");
  }

 private:
  const tests::TemporaryFolder folder_;
  const fs::path before_;
};

std::string told(const std::string& name) {
  constexpr std::string_view command_mark = "#   dsplan ";
  std::istringstream spec(tests::file_text("examples/" + name + ".toml"));
  std::string text;
  for (std::string line; std::getline(spec, line) && line.starts_with('#');) {
    if (!line.starts_with(command_mark)) {
      text += line.substr(std::min<std::size_t>(line.size(), 2)) + "\n";
      continue;
    }
    std::ostringstream out, err;
    const int exit_code =
        cli::run_dsplan(tests::arguments_of(line.substr(command_mark.size())), out, err, cli::TextStyle{});
    EXPECT_LE(exit_code, 1) << line << '\n' << err.str();
    text += "$ " + line.substr(4) + "\n" + out.str();
  }
  return text;
}

/// Without numbers and the width they take: what an example about this machine says on every machine.
std::string without_numbers(const std::string& text) {
  const std::string unnumbered = std::regex_replace(text, std::regex("[0-9][0-9.,]*"), "#");
  return std::regex_replace(unnumbered, std::regex("  +|--+"), "  ");
}

class Example : public ::testing::TestWithParam<std::string> {};

TEST_P(Example, AnswersAsExpected) {
  const fs::path expected = fs::absolute("examples/" + GetParam() + ".expected.txt");
  std::string answer;
  {
    const WorkFolder folder;
    answer = told(GetParam());
  }
  ASSERT_NE(answer.find("$ dsplan "), std::string::npos) << "no command in the comment at its head";
  const bool about_this_machine =
      tests::file_text("examples/" + GetParam() + ".toml").find("localhost") != std::string::npos;
  const std::string before = tests::file_text(expected);
  if (about_this_machine && without_numbers(answer) == without_numbers(before)) return;
  tests::expect_golden(expected, answer);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Dsplan, Example, ::testing::ValuesIn(example_names()), test_name);

/// The sections of a report's text, by title.
std::string sections_of(const std::string& report, const std::vector<std::string>& titles) {
  std::string kept;
  bool keeps = false;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ')
      keeps = std::any_of(titles.begin(), titles.end(),
                          [&](const std::string& title) { return line.starts_with(title); });
    if (keeps) kept += line + "\n";
  }
  return kept;
}

/// As the README shows it: indented, without blank lines at its ends.
std::string indented(const std::string& text) {
  std::string block;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) block += line.empty() ? "\n" : "    " + line + "\n";
  while (block.ends_with("\n\n")) block.pop_back();
  return block;
}

TEST(Readme, ShowsWhatItsExampleAnswers) {
  const std::string readme = tests::file_text("README.md");
  const std::string command = "    $ dsplan plan examples/gpt3-175b.toml -o plan.json\n\n";
  const std::size_t start = readme.find(command);
  ASSERT_NE(start, std::string::npos);
  std::size_t end = start + command.size();
  while (readme[end] == '\n' || readme.compare(end, 4, "    ") == 0) end = readme.find('\n', end) + 1;
  const std::string expected = indented(sections_of(tests::file_text("examples/gpt3-175b.expected.txt"),
                                                    {"Plan of", "Why this placement", "Certificate"})) +
                               "\n";
  tests::expect_golden("README.md", readme.substr(0, start) + command + expected + readme.substr(end));
}

TEST(FieldGuide, TellsAClaimWithOurFigureAndWhyTheyDiffer) {
  const auto run = tests::run_program("DSPLAN=" DSPLAN_PROGRAM " script/field-guide lustre-against-nfs");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, tests::file_text("examples/field-guide/lustre-against-nfs.expected.txt"));
  EXPECT_EQ(tests::run_program("DSPLAN=" DSPLAN_PROGRAM " script/field-guide nothing").exit_code, 2);
}

}  // namespace
