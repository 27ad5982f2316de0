// What the commands print. A case is a file of command lines, <name>.commands, and what they printed,
// <name>.expected: each command, its standard output, its standard error led by "! ", and its exit code where
// it is not 0. "$TMP" stands for a folder that the commands of a case share.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/dsplan/application.h"
#include "tests/cli/dsplan/command_line.h"
#include "tests/support/golden_file.h"
#include "tests/support/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

const fs::path& cases_folder() {
  static const fs::path folder = "tests/golden/dsplan/cases";
  return folder;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cases_folder()))
    if (entry.path().extension() == ".commands") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string transcript_of(const std::string& name) {
  const tests::TemporaryFolder folder;
  std::istringstream commands(tests::file_text(cases_folder() / (name + ".commands")));
  std::string transcript;
  for (std::string command; std::getline(commands, command);) {
    if (command.empty() || command[0] == '#') continue;
    std::string expanded = command;
    replace_all(expanded, "$TMP", folder.path().string());
    std::vector<std::string> arguments = tests::arguments_of(expanded);
    EXPECT_EQ(arguments.at(0), "dsplan") << command;
    arguments.erase(arguments.begin());
    std::ostringstream out, err;
    const int exit_code = cli::run_dsplan(arguments, out, err, cli::TextStyle{});
    transcript += "$ " + command + "\n" + out.str();
    std::istringstream errors(err.str());
    for (std::string line; std::getline(errors, line);) transcript += "! " + line + "\n";
    if (exit_code != 0) transcript += "exit code " + std::to_string(exit_code) + "\n";
    transcript += "\n";
  }
  replace_all(transcript, folder.path().string(), "$TMP");
  return transcript;
}

class Transcript : public ::testing::TestWithParam<std::string> {};

TEST_P(Transcript, PrintsWhatItPrintedWhenItWasReviewed) {
  tests::expect_golden(cases_folder() / (GetParam() + ".expected"), transcript_of(GetParam()));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Dsplan, Transcript, ::testing::ValuesIn(case_names()), test_name);

}  // namespace
