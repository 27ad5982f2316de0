#include "planner/questions/sensitivity.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/price_placement.h"
#include "specs/language/read_experiment.h"

namespace planner {
namespace {

std::vector<SensitivityEntry> entries_of(std::vector<std::string> settings) {
  std::vector<std::string> all{"model.preset=gpt3-1.3b",    "cluster.nodes=4",   "training.global_batch=64",
                               "search.pipeline=[4]",       "search.tensor=[1]", "search.micro_batch=[1]",
                               "search.schedule=[\"1f1b\"]"};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto experiment = specs::read_experiment("examples/gpt3-175b.toml", all);
  EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  const auto priced = price_best_completion(*experiment);
  EXPECT_TRUE(priced.ok()) << priced.diagnostics.render();
  return sensitivity(*experiment, priced->plan.placement);
}

double saving_of(const std::vector<SensitivityEntry>& entries, const std::string& words) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const SensitivityEntry& entry) {
    return entry.change.find(words) != std::string::npos;
  });
  EXPECT_NE(found, entries.end()) << words;
  return found == entries.end() ? 0 : found->saving;
}

TEST(Sensitivity, TellsWhatWouldHelpMostFirst) {
  const std::vector<SensitivityEntry> entries = entries_of({});
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end(),
                             [](const auto& a, const auto& b) { return a.saving > b.saving; }));
  EXPECT_GT(saving_of(entries, "arithmetic"), 0.02);
  EXPECT_LT(saving_of(entries, "arithmetic"), 1 - 1 / 1.1);
}

TEST(Sensitivity, MoreMicroBatchesSpreadTheBubble) {
  // 8 micro-batches on 4 ranks: at least (p − 1) / (m + p − 1) = 27 % of the step is bubble, of which a tenth
  // more of them saves 1 − 1/1.1 = 9 %.
  EXPECT_GT(saving_of(entries_of({}), "10 % more micro-batches, for the same tokens (from 9 for 8)"), 0.02);
  EXPECT_LT(saving_of(entries_of({"training.global_batch=4096"}), "(from 564 for 512)"), 0.01);
}

TEST(Sensitivity, ScalesTheMicroBatchesThatTheScheduleTakesToATenthMore) {
  // The step is a micro-batch's time times their number, and what comes once: both follow from two numbers.
  const auto step_with = [](std::int64_t micro_batches) {
    const auto experiment = specs::read_experiment(
        "examples/gpt3-175b.toml",
        {"model.preset=gpt3-1.3b", "cluster.nodes=4", "search.pipeline=[4]", "search.tensor=[1]",
         "search.micro_batch=[1]", "search.schedule=[\"interleaved\"]", "search.virtual_stages=[2]",
         fmt::format("training.global_batch={}", 8 * micro_batches), "search.context=[1]"});
    EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
    const auto priced = price_best_completion(*experiment);
    return std::pair(priced->plan.prediction.step_seconds, sensitivity(*experiment, priced->plan.placement));
  };
  const auto [now, entries] = step_with(32);
  const double each = (step_with(36).first - now) / 4;
  const double once = now - 32 * each;
  // Whole rounds of four micro-batches alone: 36 of them for 32, 12.5 % more.
  EXPECT_NEAR(saving_of(entries, "10 % more micro-batches, for the same tokens (from 36 for 32)"),
              once / now * (1 - 1 / 1.1), 1e-6);
}

}  // namespace
}  // namespace planner
