#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/run_directory.h"
#include "runtime/train/run_summary.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using testing::HasSubstr;

TEST(RunSummary, ShowsFiguresBesideThePredictedOnes) {
  RunSummary summary;
  summary.steps = 200;
  summary.first_loss = 5.5;
  summary.last_loss = 2.25;
  summary.evaluated = true;
  summary.held_back_loss = 2.5;
  summary.held_back_entropy = 3.125;
  summary.step_seconds = 0.11;
  summary.predicted_step_seconds = 0.1;
  summary.tokens_per_second = 1234567;
  summary.memory = {{.measured_bytes = std::int64_t{90} << 20,
                     .worst_bytes = std::int64_t{95} << 20,
                     .predicted_bytes = std::int64_t{100} << 20}};
  summary.run_directory = "runs/quick";
  summary.checkpoint = "runs/quick/checkpoints/step-200";
  EXPECT_EQ(
      render(summary),
      "  training loss       5.5000 at the first step, 2.2500 at step 200\n"
      "  held-back loss      2.5000 nats/byte, below the byte entropy 3.1250\n"
      "  step time           0.1100 s, predicted 0.1000 s (+10.0 %)\n"
      "  throughput          1,234,567 tokens/s\n"
      "  peak memory         90.0 MiB a rank, predicted 100.0 MiB (-10.0 %); 95.0 MiB in the worst step\n"
      "  checkpoint          runs/quick/checkpoints/step-200\n"
      "  metrics             runs/quick/metrics.jsonl\n"
      "  logs                runs/quick/logs\n");
}

TEST(RunSummary, SaysThatNothingWasLeftToTrain) {
  RunSummary summary;
  summary.steps = 40;
  summary.trained = false;
  summary.evaluated = true;
  summary.held_back_loss = 2.5;
  summary.held_back_entropy = 3.125;
  summary.predicted_step_seconds = 0.2;
  summary.memory = {{.measured_bytes = 0, .predicted_bytes = std::int64_t{100} << 20}};
  summary.run_directory = "runs/quick";
  summary.checkpoint = "runs/quick/checkpoints/step_40";
  EXPECT_EQ(render(summary),
            "  training loss       none: the run had ended at step 40\n"
            "  held-back loss      2.5000 nats/byte, below the byte entropy 3.1250\n"
            "  checkpoint          runs/quick/checkpoints/step_40\n"
            "  metrics             runs/quick/metrics.jsonl\n"
            "  logs                runs/quick/logs\n");
}

TEST(RunSummary, ShowsWhatLiesOnTheHost) {
  RunSummary summary;
  summary.memory = {{.measured_bytes = 1 << 20,
                     .predicted_bytes = 1 << 20,
                     .host_bytes = 3 << 20,
                     .predicted_host_bytes = 4 << 20}};
  EXPECT_THAT(render(summary),
              HasSubstr("    on the host       3.0 MiB a rank, predicted 4.0 MiB (-25.0 %)\n"));
}

TEST(RunSummary, SaysWhereTheLossIsNotBelowTheEntropyAndShowsEachStage) {
  RunSummary summary;
  summary.evaluated = true;
  summary.held_back_loss = 3.5;
  summary.held_back_entropy = 3.125;
  summary.memory.resize(2);
  EXPECT_THAT(render(summary), HasSubstr("not below the byte entropy"));
  EXPECT_THAT(render(summary), HasSubstr("peak memory, stage 1"));
}

TEST(RunSummary, NumbersAndMedians) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(-1234567), "-1,234,567");
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

class RunDirectoryTest : public testing::Test {
 protected:
  void leave_a_run() const {
    std::filesystem::create_directories(folder_ / "checkpoints" / "step-1");
    std::ofstream(folder_ / "metrics.jsonl") << "{}";
    std::ofstream(folder_ / "notes.txt") << "the user's";
  }

  const tests::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path() / "run";
};

TEST_F(RunDirectoryTest, IsMadeWhereItIsMissing) {
  EXPECT_TRUE(prepare_run_directory(folder_ / "a" / "b", {}).empty());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "a" / "b"));
}

TEST_F(RunDirectoryTest, AnEarlierRunIsRefusedUnlessResumedOrOverwritten) {
  leave_a_run();
  EXPECT_THAT(prepare_run_directory(folder_, {}).render(), HasSubstr("--overwrite"));
  EXPECT_TRUE(prepare_run_directory(folder_, {.resume = true}).empty());
  EXPECT_TRUE(prepare_run_directory(folder_, {.dry_run = true}).empty());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints" / "step-1"));
}

TEST_F(RunDirectoryTest, OverwritingRemovesWhatTheRunWroteAndNothingElse) {
  leave_a_run();
  EXPECT_TRUE(prepare_run_directory(folder_, {.overwrite = true}).empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoints"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "metrics.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "notes.txt"));
}

TEST_F(RunDirectoryTest, ARunThatStillWritesKeepsOthersOut) {
  leave_a_run();
  {
    RunDirectoryLock first, second;
    ASSERT_TRUE(prepare_run_directory(folder_, {.resume = true}, &first).empty());
    for (const RunDirectoryUse& use : {RunDirectoryUse{.resume = true}, {.overwrite = true}, {}})
      EXPECT_THAT(prepare_run_directory(folder_, use, &second).render(), HasSubstr("another run is writing"));
    EXPECT_TRUE(prepare_run_directory(folder_, {.dry_run = true}, &second).empty());
    EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoints" / "step-1"));
  }
  RunDirectoryLock later;
  EXPECT_TRUE(prepare_run_directory(folder_, {.overwrite = true}, &later).empty());
}

TEST_F(RunDirectoryTest, AFileInItsPlaceIsAnError) {
  std::ofstream(folder_.string()) << "a file";
  EXPECT_TRUE(prepare_run_directory(folder_ / "run", {}).has_errors());
}

}  // namespace
}  // namespace runtime
