#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/launch/run_error.h"
#include "runtime/monitor/metrics.h"
#include "runtime/monitor/rank_log.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

class RecordsTest : public testing::Test {
 protected:
  static std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const tests::TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(RecordsTest, AStepIsOneJsonLineWithUnitsInItsKeys) {
  StepMetrics metrics{7, 2.5, 0.75, 1e-3, 8, false, 0.5, 4096, 0.01, {100, 200}, {30, 0}};
  EXPECT_EQ(to_json_line(metrics),
            R"({"step":7,"loss":2.5,"gradient_norm":0.75,"learning_rate":0.001,"loss_scale":8.0,)"
            R"("updated":false,"step_seconds":0.5,"tokens_per_second":4096.0,"data_wait_seconds":0.01,)"
            R"("peak_tensor_bytes":[100,200],"peak_host_bytes":[30,0]})");
}

TEST_F(RecordsTest, AResumedRunHasEachStepOnce) {
  const auto path = folder_ / "metrics.jsonl";
  {
    MetricsFile file(path, 0);
    for (std::int64_t step = 1; step <= 5; ++step) file.write({.step = step, .loss = 1.0});
  }
  std::ofstream(path, std::ios::app) << "{\"step\":6,\"lo";  // what a killed run leaves
  {
    MetricsFile file(path, 3);
    file.write({.step = 4, .loss = 2.0});
  }
  std::ifstream file(path);
  std::string steps;
  for (std::string line; std::getline(file, line);) steps += line.substr(8, 1);
  EXPECT_EQ(steps, "1234");
  MetricsFile fresh(path, 0);
  EXPECT_EQ(text_of(path), "");
}

TEST_F(RecordsTest, AFolderThatIsMissingIsAStorageError) {
  EXPECT_THROW(MetricsFile(folder_ / "absent" / "metrics.jsonl", 0), RunError);
}

TEST_F(RecordsTest, ALogLineHasTimeLevelAndRankAndLowerLevelsAreLeftOut) {
  RankLog log(folder_, 3, "warning");
  log.info("not this");
  log.warning("but this");
  EXPECT_EQ(log.path(), folder_ / "logs" / "rank-3.log");
  const std::string text = text_of(log.path());
  EXPECT_NE(text.find("warning rank 3: but this\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("not this"), std::string::npos);
}

TEST_F(RecordsTest, ALogThatCannotBeOpenedIsAStorageError) {
  std::ofstream(folder_ / "logs") << "a file where the folder should be";
  try {
    RankLog log(folder_, 0);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_EQ(error.code(), exit_storage);
  }
}

}  // namespace
}  // namespace runtime
