// Each tests/golden/specs/NAME.toml is wrong; NAME.err is all that is said about it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "specs/language/read_experiment.h"
#include "tests/support/golden_file.h"

namespace specs {
namespace {

std::vector<std::string> bad_specs() {
  std::vector<std::string> names;
  std::error_code missing;  // reported by the suite being empty
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/specs", missing))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class BadSpec : public testing::TestWithParam<std::string> {};

TEST_P(BadSpec, IsRefusedWithEveryErrorInOrder) {
  const std::string path = "tests/golden/specs/" + GetParam();
  const auto experiment = read_experiment(path + ".toml");
  EXPECT_FALSE(experiment.ok());
  EXPECT_TRUE(experiment.diagnostics.has_errors());
  tests::expect_golden(path + ".err", experiment.diagnostics.render());

  int last_line = 0;
  for (const Diagnostic& entry : experiment.diagnostics.entries()) {
    EXPECT_GE(entry.position.line, last_line);
    last_line = entry.position.line;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BadSpec, testing::ValuesIn(bad_specs()),
                         [](const auto& spec) { return spec.param; });

}  // namespace
}  // namespace specs
