// `dsplan show` and `dsplan catalog` as a user runs them.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace {

using tests::run_program;

const std::string dsplan = DSPLAN_PROGRAM;

TEST(Show, PrintsTheFileAsItIs) {
  const auto run = run_program(dsplan + " show examples/gpt3-175b.toml");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, tests::file_text("examples/gpt3-175b.toml"));
  EXPECT_EQ(run.err, "");
}

TEST(Show, ResolvedFillsInEveryDefault) {
  const auto run = run_program(dsplan + " show examples/gpt3-175b.toml --resolved");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, tests::file_text("tests/golden/specs/gpt3-175b.resolved"));
}

TEST(Show, AppliesOverrides) {
  const auto run =
      run_program(dsplan + " show examples/gpt3-175b.toml --set cluster.nodes=64 --set name=half");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.out.find("name = \"half\""), std::string::npos);
  EXPECT_NE(run.out.find("nodes = 64"), std::string::npos);
}

TEST(Show, RefusesABadExperimentWithItsErrors) {
  const auto run = run_program(dsplan + " show tests/golden/specs/heads.toml");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, tests::file_text("tests/golden/specs/heads.err"));
}

TEST(Show, SaysThatAFileIsMissing) {
  const auto run = run_program(dsplan + " show no/such.toml");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "no/such.toml: error: no such file\n  remedy: check the path\n");
}

TEST(Catalog, ListsEveryKind) {
  const auto run = run_program(dsplan + " catalog --format json");
  EXPECT_EQ(run.exit_code, 0);
  const auto catalog = nlohmann::json::parse(run.out);
  for (const char* kind : {"device", "node", "network", "storage", "model", "stack"}) {
    ASSERT_TRUE(catalog.contains(kind)) << kind;
    EXPECT_GT(catalog[kind].size(), 2U) << kind;
    EXPECT_FALSE(catalog[kind][0]["source"].get<std::string>().empty());
  }
}

TEST(Catalog, PrintsAnEntryThatAnExperimentCanHold) {
  const auto run = run_program(dsplan + " catalog node dgx-a100-80gb");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.out.find("# source: NVIDIA DGX A100 data sheet"), std::string::npos);
  EXPECT_NE(run.out.find("[cluster.node.device]\nname = \"a100-sxm-80gb\""), std::string::npos);
}

TEST(Catalog, SuggestsTheNearestName) {
  const auto run = run_program(dsplan + " catalog model gpt3-175");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "error: unknown model \"gpt3-175\"\n  remedy: did you mean \"gpt3-175b\"?\n");
}

TEST(Catalog, WorksForACopyOfTheProgramAloneInAFolder) {
  const tests::TemporaryFolder folder;
  std::filesystem::copy_file(dsplan, folder.path() / "dsplan");
  const auto run = run_program("cd " + folder.path().string() + " && ./dsplan catalog stack dsrun");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("fp64"), std::string::npos);
}

TEST(Program, RefusesAnUnknownVerb) {
  const auto run = run_program(dsplan + " plann");
  EXPECT_EQ(run.exit_code, 2);
}

}  // namespace
