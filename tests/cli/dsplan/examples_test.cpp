// Every example with its expected answer: the comment at its head, and under each command line of it
// ("#   dsplan …") what that prints. UPDATE_GOLDENS=1 writes the answers anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/dsplan/application.h"
#include "tests/cli/dsplan/command_line.h"
#include "tests/support/golden_file.h"
#include "tests/support/run_program.h"

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
  WorkFolder()
      : before_(fs::current_path()),
        path_(fs::temp_directory_path() / ("dsplan-examples-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
    fs::create_directory_symlink(before_ / "examples", path_ / "examples");
    fs::current_path(path_);
    // No measured rates of this machine.
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~WorkFolder() {
    fs::current_path(before_);
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(path_);
  }

 private:
  fs::path before_, path_;
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

/// What depends on the machine where an example is about it.
std::string without_digits(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return std::isdigit(letter) != 0; }, '#');
  return text;
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
  const bool updates = std::getenv("UPDATE_GOLDENS") != nullptr;
  if (about_this_machine && !updates)
    EXPECT_EQ(without_digits(answer), without_digits(tests::file_text(expected)));
  else
    tests::expect_golden(expected, answer);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Dsplan, Example, ::testing::ValuesIn(example_names()), test_name);

TEST(FieldGuide, TellsAClaimWithOurFigureAndWhyTheyDiffer) {
  const auto run = tests::run_program("DSPLAN=" DSPLAN_PROGRAM " script/field-guide lustre-against-nfs");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, tests::file_text("examples/field-guide/lustre-against-nfs.expected.txt"));
  EXPECT_EQ(tests::run_program("DSPLAN=" DSPLAN_PROGRAM " script/field-guide nothing").exit_code, 2);
}

}  // namespace
