// dsrun as a user starts it: alone, under torchrun's variables, and when things go wrong.
#include <cmath>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/e2e/port.h"
#include "tests/e2e/process.h"
#include "tests/e2e/small_plan.h"
#include "tests/support/temporary_folder.h"

namespace e2e {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run_directory) {
  std::vector<nlohmann::json> steps;
  std::istringstream lines(read_file(run_directory / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) steps.push_back(nlohmann::json::parse(line));
  return steps;
}

std::vector<double> losses_of(const std::filesystem::path& run_directory) {
  std::vector<double> losses;
  for (const auto& step : metrics_of(run_directory)) losses.push_back(step["loss"]);
  return losses;
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Dsrun : public testing::Test {
 protected:
  void SetUp() override { write_file(folder() / "text.txt", training_text()); }

  const std::filesystem::path& folder() const { return scratch_.path(); }
  std::filesystem::path run_directory() const { return folder() / "run"; }

  std::unique_ptr<Process> start(std::vector<std::string> arguments, ProcessOptions options = {}) const {
    options.arguments = std::move(arguments);
    if (options.directory.empty()) options.directory = folder();
    return std::make_unique<Process>(DSRUN_PROGRAM, options);
  }
  /// With the usual text and run folder.
  std::unique_ptr<Process> train(const SmallPlan& plan, std::vector<std::string> more = {},
                                 ProcessOptions options = {}) const {
    write_file(folder() / "plan.json", plan_text(plan));
    std::vector<std::string> arguments{"plan.json", "--data", "text.txt", "--run-dir", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(std::move(arguments), std::move(options));
  }
  /// Waits until `steps` steps are in the metrics; false where the program ends before.
  bool reaches(std::size_t steps, Process& process) const {
    const auto done = [&] {
      return static_cast<std::size_t>(occurrences(read_file(run_directory() / "metrics.jsonl"), "\n")) >=
             steps;
    };
    eventually([&] { return done() || process.wait(std::chrono::milliseconds(0)); });
    return done();
  }

 private:
  tests::TemporaryFolder scratch_;
};

/// Steps enough to be interrupted in the middle.
constexpr std::int64_t many_steps = 100000;

TEST_F(Dsrun, TrainsOnItsOwnRanksAndLeavesLogsMetricsAndACheckpoint) {
  const auto process = train({.tensor = 2, .pipeline = 2, .steps = 30});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  const auto steps = metrics_of(run_directory());
  ASSERT_EQ(steps.size(), 30U);
  EXPECT_LT(steps.back()["loss"], 0.8 * steps.front()["loss"].get<double>());
  EXPECT_EQ(steps.back()["step"], 30);
  EXPECT_EQ(steps.back()["peak_tensor_bytes"].size(), 4U);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(read_file(run_directory() / "logs" / ("rank-" + std::to_string(rank) + ".log")),
                HasSubstr(" done"));
  EXPECT_EQ(read_file(run_directory() / "plan.json"), read_file(folder() / "plan.json"));
  EXPECT_FALSE(std::filesystem::is_empty(run_directory() / "checkpoints"));
  EXPECT_THAT(process->output(), HasSubstr("held-back loss"));
  EXPECT_THAT(process->output(), HasSubstr("below the byte entropy"));
  EXPECT_THAT(process->output(), Not(HasSubstr("rank 0: ")));
}

TEST_F(Dsrun, LossThatIsNoNumberEndsTheRunWithItsOwnCode) {
  const auto process = train({.data = 2, .steps = 200, .diverges = true});
  EXPECT_EQ(process->wait(), 12) << process->errors();
  EXPECT_THAT(process->errors(), HasSubstr("finite"));
  EXPECT_FALSE(std::filesystem::exists(run_directory() / "checkpoints" / "latest"));
}

TEST_F(Dsrun, AnOverflowAtTheSmallestLossScaleEndsTheRunAndNamesTheFirstTensorItsLayerAndItsRank) {
  const auto process = train({.pipeline = 2,
                              .steps = 200,
                              .precision = specs::Precision::fp16,
                              .initial_loss_scale = 0x1p40,
                              .minimum_loss_scale = 0x1p37});
  EXPECT_EQ(process->wait(), 12) << process->errors();
  EXPECT_THAT(process->errors(), HasSubstr("step 5: gradients overflow at the smallest loss scale"));
  EXPECT_THAT(process->errors(), HasSubstr("the first tensor that is not finite is the gradient of"));
  EXPECT_THAT(process->errors(), HasSubstr("on rank 1"));
  // The first overflow is forgiven, each of the others halves.
  std::vector<double> scales;
  for (const auto& step : metrics_of(run_directory())) {
    scales.push_back(step["loss_scale"]);
    EXPECT_EQ(step["updated"], false);
  }
  EXPECT_THAT(scales, testing::ElementsAre(0x1p40, 0x1p40, 0x1p39, 0x1p38));
  EXPECT_FALSE(std::filesystem::exists(run_directory() / "checkpoints" / "latest"));
}

TEST_F(Dsrun, AnOffloadedOptimizerGivesTheSameLossesFromLessOfTheDevicesMemory) {
  ASSERT_EQ(train({.data = 2, .zero_stage = 1})->wait(), 0);
  const std::vector<double> losses = losses_of(run_directory());
  const auto resident = metrics_of(run_directory()).back();
  EXPECT_EQ(resident["peak_host_bytes"], nlohmann::json({0, 0}));
  const auto process = train({.data = 2, .zero_stage = 1, .offload_eighths = 8}, {"--overwrite"});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  EXPECT_EQ(losses_of(run_directory()), losses);
  EXPECT_THAT(process->output(), HasSubstr("on the host"));
  const auto offloaded = metrics_of(run_directory()).back();
  for (const int rank : {0, 1}) {
    // Moments, weights and gradients of the shard, of which the moments have left the device.
    const std::int64_t host = offloaded["peak_host_bytes"][rank];
    // A few scalars (loss, norm, scale) may or may not live at the peak: threads free them.
    constexpr double scalars_bytes = 64;
    EXPECT_NEAR(resident["peak_tensor_bytes"][rank].get<double>() -
                    offloaded["peak_tensor_bytes"][rank].get<double>(),
                static_cast<double>(host) / 2, scalars_bytes);
  }
  const auto delayed =
      train({.data = 2, .zero_stage = 1, .offload_eighths = 8, .delayed_update = true}, {"--overwrite"});
  ASSERT_EQ(delayed->wait(), 0) << delayed->errors();
  const std::vector<double> behind = losses_of(run_directory());
  EXPECT_EQ(behind[0], losses[0]);
  EXPECT_NE(behind[1], losses[1]) << "the first update is not yet in the weights of the second step";
  EXPECT_LT(behind.back(), losses.front());
}

TEST_F(Dsrun, RunsWhatThePlannerMakesOfTheExampleThatOffloads) {
  const std::string example = std::string(DSPLAN_EXAMPLES) + "/offload.toml";
  ProcessOptions options;
  options.arguments = {"plan", example, "-o", "plan.json"};
  options.directory = folder();
  Process planner(DSPLAN_PROGRAM, options);
  ASSERT_EQ(planner.wait(), 0) << planner.errors();
  EXPECT_THAT(planner.output(), HasSubstr("6/8 of optimizer on cpu"));
  const auto process = start({"plan.json", "--data", "text.txt", "--run-dir", "run", "--steps", "3"});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  EXPECT_THAT(process->output(), HasSubstr("on the host"));
}

TEST_F(Dsrun, TrainsInFp16WhatThePlannerMakesOfTheQuickstart) {
  ProcessOptions options;
  options.arguments = {"plan",  std::string(DSPLAN_EXAMPLES) + "/quickstart.toml",
                       "--set", "training.precision=fp16",
                       "-o",    "plan.json"};
  options.directory = folder();
  Process planner(DSPLAN_PROGRAM, options);
  ASSERT_EQ(planner.wait(), 0) << planner.errors();
  const auto process = start({"plan.json", "--data", "text.txt", "--run-dir", "run", "--steps", "10"});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  const auto steps = metrics_of(run_directory());
  ASSERT_EQ(steps.size(), 10U);
  EXPECT_EQ(steps.front()["loss_scale"], 65536);
  EXPECT_LT(steps.back()["loss"], steps.front()["loss"]);
}

TEST_F(Dsrun, EverySchedulePlannedForTwoStagesGivesTheSameLosses) {
  ASSERT_EQ(train({.pipeline = 2, .steps = 3})->wait(), 0);
  const std::vector<double> losses = losses_of(run_directory());
  ASSERT_EQ(losses.size(), 3U);
  const std::vector<SmallPlan> plans{
      {.pipeline = 2, .steps = 3, .schedule = specs::ScheduleKind::gpipe},
      {.pipeline = 2, .steps = 3, .schedule = specs::ScheduleKind::interleaved, .virtual_stages = 2},
      {.pipeline = 2, .steps = 3, .schedule = specs::ScheduleKind::zero_bubble_h1},
      {.pipeline = 2, .steps = 3, .recomputation = specs::Recomputation::full},
  };
  for (const SmallPlan& plan : plans) {
    const auto process = train(plan, {"--overwrite"});
    ASSERT_EQ(process->wait(), 0) << process->errors();
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(losses_of(run_directory())[step], losses[step], 1e-5) << specs::name_of(plan.schedule);
  }
}

TEST_F(Dsrun, EveryZeroStageGivesTheSameLossesAndGoesOnFromTheCheckpointOfTheOneBefore) {
  ASSERT_EQ(train({.data = 2, .steps = 5})->wait(), 0);
  const std::vector<double> losses = losses_of(run_directory());
  const SmallPlan first{.data = 2, .steps = 5};
  ASSERT_EQ(train(first, {"--overwrite", "--steps", "1"})->wait(), 0);
  for (const std::int64_t stage : {3, 2, 1, 3}) {
    const std::size_t done = losses_of(run_directory()).size();
    const SmallPlan plan{.data = 2, .zero_stage = stage, .steps = 5};
    const auto process = train(plan, {"--resume", "--debug-sync", "--steps", std::to_string(done + 1)});
    ASSERT_EQ(process->wait(), 0) << process->errors();
  }
  ASSERT_EQ(losses_of(run_directory()).size(), losses.size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses_of(run_directory())[step], losses[step], 1e-5) << step;
}

TEST_F(Dsrun, ADryRunConnectsTheRanksAndTrainsNothing) {
  const auto process = train({.data = 2}, {"--dry-run"});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  EXPECT_THAT(process->output(), HasSubstr("dry run: 2 ranks are connected"));
  EXPECT_FALSE(std::filesystem::exists(run_directory() / "metrics.jsonl"));
}

TEST_F(Dsrun, FourProcessesInTwoFoldersUnderTorchrunVariablesTrainAsTheLocalLauncherDoes) {
  const SmallPlan plan{.tensor = 2, .data = 2, .steps = 5};
  ASSERT_EQ(train(plan)->wait(), 0);
  const std::vector<double> local = losses_of(run_directory());
  ASSERT_EQ(local.size(), 5U);

  const std::string port = free_port();
  std::vector<std::unique_ptr<Process>> ranks;
  for (const std::string host : {"host-a", "host-b"}) {
    std::filesystem::create_directories(folder() / host);
    write_file(folder() / host / "plan.json", plan_text(plan));
    write_file(folder() / host / "text.txt", training_text());
  }
  for (int rank = 0; rank < 4; ++rank) {
    ProcessOptions options;
    options.directory = folder() / (rank < 2 ? "host-a" : "host-b");
    options.environment = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", std::to_string(rank % 2)},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", port},
                           {"OMP_NUM_THREADS", "1"}};
    ranks.push_back(start({"plan.json", "--data", "text.txt", "--run-dir", "out"}, options));
  }
  for (const auto& rank : ranks) ASSERT_EQ(rank->wait(), 0) << rank->errors();
  EXPECT_EQ(losses_of(folder() / "host-a" / "out"), local);
  EXPECT_FALSE(std::filesystem::exists(folder() / "host-b" / "out" / "metrics.jsonl"));
  for (const auto& [host, rank] : {std::pair("host-a", 0), {"host-a", 1}, {"host-b", 2}, {"host-b", 3}})
    EXPECT_TRUE(std::filesystem::exists(folder() / host / "out" / "logs" /
                                        ("rank-" + std::to_string(rank) + ".log")));
  EXPECT_FALSE(std::filesystem::is_empty(folder() / "host-b" / "out" / "checkpoints"));
}

TEST_F(Dsrun, AKilledRankEndsTheJobWithItsOwnErrorOnceAndNoOrphan) {
  const auto process = train({.data = 4, .steps = many_steps});
  ASSERT_TRUE(reaches(2, *process)) << process->errors();
  const std::vector<pid_t> ranks = process->children();
  ASSERT_EQ(ranks.size(), 4U);
  kill(ranks[2], SIGKILL);
  EXPECT_EQ(process->wait(seconds(20)), 10);
  EXPECT_THAT(process->errors(), MatchesRegex("[^ :]+:rank 2: error: killed by signal 9 .Killed.\n"));
  for (const pid_t rank : ranks) EXPECT_FALSE(runs(rank));
}

/// OpenMP tells its settings when a program is loaded: all ranks at once, a piece of a line at a time; the
/// launcher, which loads it too, without a prefix.
TEST_F(Dsrun, LinesThatRanksPrintAreWholeAndNameHostAndRank) {
  ProcessOptions options;
  options.environment = {{"OMP_DISPLAY_ENV", "TRUE"}, {"OMP_NUM_THREADS", "1"}};
  const auto process = train({.data = 4, .steps = 2}, {}, options);
  ASSERT_EQ(process->wait(), 0) << process->errors();
  std::vector<std::string> launcher;
  std::map<std::string, std::vector<std::string>> ranks;
  std::istringstream lines(process->errors());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(": ");
    const bool of_rank = end != std::string::npos && line.find(":rank ") < end;
    if (of_rank)
      ranks[line.substr(0, end)].push_back(line.substr(end + 2));
    else if (line.find("OMP_WAIT_POLICY") == std::string::npos)  // which it sets for its ranks
      launcher.push_back(line);
  }
  ASSERT_GT(launcher.size(), 5U);
  ASSERT_EQ(ranks.size(), 4U);
  for (auto& [prefix, printed] : ranks) {
    EXPECT_THAT(prefix, MatchesRegex("[^ :]+:rank [0-3]"));
    std::erase_if(printed,
                  [](const std::string& line) { return line.find("OMP_WAIT_POLICY") != std::string::npos; });
    EXPECT_EQ(printed, launcher) << prefix;
  }
}

TEST_F(Dsrun, ARankThatStopsIsATimeoutThatNamesTheCollective) {
  const auto process = train({.data = 2, .steps = many_steps}, {"--timeout", "5"});
  ASSERT_TRUE(reaches(2, *process)) << process->errors();
  const std::vector<pid_t> ranks = process->children();
  kill(ranks[1], SIGSTOP);
  EXPECT_EQ(process->wait(seconds(40)), 11) << process->errors();
  EXPECT_THAT(process->errors(), HasSubstr("rank 0: error: "));
  EXPECT_THAT(process->errors(), HasSubstr("(ranks 0,1) timed out"));
  EXPECT_THAT(process->errors(), HasSubstr("; still silent: rank 1\n"));
  for (const pid_t rank : ranks) EXPECT_FALSE(runs(rank));
}

TEST_F(Dsrun, TheDeathOfTheLauncherEndsItsRanks) {
  const auto process = train({.data = 2, .steps = many_steps});
  ASSERT_TRUE(reaches(1, *process)) << process->errors();
  const std::vector<pid_t> ranks = process->children();
  process->send_signal(SIGKILL);
  process->wait(seconds(5));
  EXPECT_TRUE(eventually([&] { return !runs(ranks[0]) && !runs(ranks[1]); }, seconds(5)));
}

class DsrunSignal : public Dsrun, public testing::WithParamInterface<int> {};

TEST_P(DsrunSignal, EndsEveryRankAndKeepsTheLastWholeCheckpoint) {
  const auto process = train({.data = 2, .steps = many_steps, .checkpoint_every = 2});
  ASSERT_TRUE(reaches(5, *process)) << process->errors();
  const std::vector<pid_t> ranks = process->children();
  process->send_signal(GetParam());
  EXPECT_EQ(process->wait(seconds(20)), 128 + GetParam());
  for (const pid_t rank : ranks) EXPECT_FALSE(runs(rank));

  const std::size_t before = metrics_of(run_directory()).size();
  const auto resumed = start({"plan.json", "--data", "text.txt", "--run-dir", "run", "--resume", "--steps",
                              std::to_string(before + 3)});
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  const auto steps = metrics_of(run_directory());
  ASSERT_EQ(steps.size(), before + 3);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i]["step"], i + 1);
}

INSTANTIATE_TEST_SUITE_P(Signals, DsrunSignal, testing::Values(SIGINT, SIGTERM));

TEST_F(Dsrun, AResumedRunGoesOnAsIfItHadNotStopped) {
  const SmallPlan plan{.data = 2, .zero_stage = 1, .steps = 6};
  ASSERT_EQ(train(plan)->wait(), 0);
  const std::vector<double> whole = losses_of(run_directory());
  ASSERT_EQ(train(plan, {"--overwrite", "--steps", "3"})->wait(), 0);
  EXPECT_EQ(losses_of(run_directory()).size(), 3U);
  const auto resumed = train(plan, {"--resume"});
  ASSERT_EQ(resumed->wait(), 0) << resumed->errors();
  EXPECT_EQ(losses_of(run_directory()), whole);
}

TEST_F(Dsrun, AnEarlierRunIsNeitherOverwrittenNorContinuedUnasked) {
  ASSERT_EQ(train({.steps = 2})->wait(), 0);
  const auto again = train({.steps = 2});
  EXPECT_EQ(again->wait(), 2);
  EXPECT_THAT(again->errors(), HasSubstr("--resume"));
  EXPECT_EQ(train({.steps = 2}, {"--overwrite"})->wait(), 0);
}

TEST_F(Dsrun, APortThatIsTakenIsNamed) {
  const TakenPort port;
  write_file(folder() / "plan.json", plan_text({}));
  ProcessOptions options;
  options.environment = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port.port()}};
  const auto process = start({"plan.json", "--data", "text.txt", "--run-dir", "run"}, options);
  EXPECT_EQ(process->wait(seconds(30)), 3);
  EXPECT_THAT(process->errors(),
              HasSubstr("rank 0: error: cannot open the rendezvous at 127.0.0.1:" + port.port()));
}

TEST_F(Dsrun, ARankThatIsNeverStartedIsATimeoutThatNamesIt) {
  write_file(folder() / "plan.json", plan_text({.data = 2}));
  for (const std::string present : {"0", "1"}) {
    ProcessOptions options;
    options.environment = {
        {"RANK", present}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", free_port()}};
    const auto process =
        start({"plan.json", "--data", "text.txt", "--run-dir", "run", "--timeout", "3"}, options);
    EXPECT_EQ(process->wait(seconds(40)), 11) << process->errors();
    EXPECT_EQ(occurrences(process->errors(), "error: "), 1) << process->errors();
    EXPECT_THAT(process->errors(),
                HasSubstr(present == "0" ? "1 of 2 ranks came together within 3 s; absent: rank 1"
                                         : "rank 0 did not open the rendezvous within 3 s"));
  }
}

TEST_F(Dsrun, ACheckpointOfAnotherModelIsBadInputAndStays) {
  ASSERT_EQ(train({.steps = 2, .checkpoint_every = 1})->wait(), 0);
  const auto resumed = train({.data = 2, .steps = 4, .feed_forward_hidden = 128}, {"--resume"});
  EXPECT_EQ(resumed->wait(), 2) << resumed->errors();
  EXPECT_EQ(occurrences(resumed->errors(), "error: "), 1) << resumed->errors();
  EXPECT_THAT(resumed->errors(), HasSubstr("is of another model"));
  EXPECT_TRUE(std::filesystem::exists(run_directory() / "checkpoints" / "step_2"));
}

TEST_F(Dsrun, APlanForAnotherWorldSizeIsRefusedWithBothNumbers) {
  write_file(folder() / "plan.json", plan_text({.data = 2}));
  ProcessOptions options;
  options.environment = {
      {"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  const auto process = start({"plan.json"}, options);
  EXPECT_EQ(process->wait(), 2);
  EXPECT_THAT(process->errors(), HasSubstr("plan.json is for 2 ranks, but torchrun started 3"));
}

TEST_F(Dsrun, HalfOfTorchrunsVariablesAreRefused) {
  write_file(folder() / "plan.json", plan_text({}));
  ProcessOptions options;
  options.environment = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  const auto process = start({"plan.json"}, options);
  EXPECT_EQ(process->wait(), 2);
  EXPECT_THAT(process->errors(), HasSubstr("MASTER_ADDR, MASTER_PORT are not set"));
}

TEST_F(Dsrun, AFullDiskAtACheckpointIsAStorageErrorAndLeavesNoHalfCheckpoint) {
  ProcessOptions options;
  options.largest_file_bytes = 30'000;  // the model and its optimizer need more, logs and metrics less
  const auto process = train({.data = 2, .steps = 3}, {}, options);
  EXPECT_EQ(process->wait(), 13) << process->errors();
  EXPECT_EQ(occurrences(process->errors(), "error: "), 1) << process->errors();
  const auto resumed = train({.data = 2, .steps = 3}, {"--resume"});
  EXPECT_EQ(resumed->wait(), 0) << resumed->errors();
}

TEST_F(Dsrun, MissingDataIsNamed) {
  write_file(folder() / "plan.json", plan_text({}));
  const auto process = start({"plan.json", "--data", "nowhere.txt", "--run-dir", "run"});
  EXPECT_EQ(process->wait(), 2);
  EXPECT_THAT(process->errors(), HasSubstr("nowhere.txt"));
  EXPECT_EQ(occurrences(process->errors(), "error: "), 1) << process->errors();
  EXPECT_FALSE(std::filesystem::exists(run_directory()));
}

TEST_F(Dsrun, ARunFolderThatTakesNoFilesIsNamedBeforeAnythingStarts) {
  write_file(folder() / "plan.json", plan_text({}));
  const auto process = start({"plan.json", "--data", "text.txt", "--run-dir", "/proc/self/fd"});
  EXPECT_EQ(process->wait(), 2);
  EXPECT_THAT(process->errors(), HasSubstr("/proc/self/fd: error: cannot write into this folder"));
}

TEST_F(Dsrun, TooLittleDataIsRefusedWithTheNumbers) {
  for (const char* limit : {"40", "1"}) {
    const auto process = train({}, {"--data-tokens", limit, "--overwrite"});
    EXPECT_EQ(process->wait(), 2);
    EXPECT_THAT(process->errors(), HasSubstr("too little text for one batch"));
    EXPECT_THAT(process->errors(), HasSubstr(std::string(limit) + " tokens"));
  }
  EXPECT_FALSE(std::filesystem::exists(run_directory() / "metrics.jsonl"));
}

TEST_F(Dsrun, MeasuresTheHeldBackLossDuringTrainingWhereAsked) {
  const auto process = train({.data = 2, .steps = 5, .evaluate_every = 2});
  ASSERT_EQ(process->wait(), 0) << process->errors();
  // After steps 2 and 4, and in the summary.
  EXPECT_EQ(occurrences(process->output(), "held-back loss"), 3) << process->output();
}

TEST_F(Dsrun, PlansThatAreMissingBrokenOrNonsenseAreRefused) {
  EXPECT_EQ(start({"absent.json"})->wait(), 2);
  write_file(folder() / "plan.json", "{");
  EXPECT_EQ(start({"plan.json"})->wait(), 2);
  auto json = nlohmann::ordered_json::parse(plan_text({.pipeline = 2}));
  json["schedule"]["replicas"][0]["rank_actions"][1] = "B0 F0";
  write_file(folder() / "plan.json", json.dump());
  const auto nonsense = start({"plan.json"});
  EXPECT_EQ(nonsense->wait(), 2);
  EXPECT_THAT(nonsense->errors(), HasSubstr("plan.json"));
}

TEST_F(Dsrun, ArgumentsThatAreNoneOfItsOwnAreRefused) {
  EXPECT_EQ(start({})->wait(), 2);
  EXPECT_EQ(start({"plan.json", "--nonsense"})->wait(), 2);
  EXPECT_EQ(start({"plan.json", "--steps", "-1"})->wait(), 2);
  EXPECT_EQ(start({"--help"})->wait(), 0);
  EXPECT_EQ(start({"--version"})->wait(), 0);
}

}  // namespace
}  // namespace e2e
