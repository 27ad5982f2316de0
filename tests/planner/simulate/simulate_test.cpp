#include "planner/simulate/simulate.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"
#include "tests/specs/schedule/schedules.h"

namespace planner {
namespace {

using specs::Action;
using specs::ActionKind;
using specs::Schedule;
using specs::ScheduleCase;
using specs::ScheduleKind;

ScheduleDurations equal_stages(std::int32_t stages, const StageDurations& stage, double transfer = 0) {
  ScheduleDurations seconds;
  seconds.stages.assign(static_cast<std::size_t>(stages), stage);
  seconds.activation_transfer.assign(static_cast<std::size_t>(stages) - 1, transfer);
  seconds.gradient_transfer = seconds.activation_transfer;
  return seconds;
}

double step_seconds(ScheduleKind kind, std::int32_t ranks, std::int32_t virtual_stages,
                    std::int32_t micro_batches, const StageDurations& stage, double transfer = 0) {
  const Schedule schedule = specs::generate_schedule(kind, ranks, virtual_stages, micro_batches);
  return simulate(specs::lower(schedule), equal_stages(schedule.stages(), stage, transfer)).seconds;
}

TEST(Simulate, EqualStagesTakeTheTextbookTime) {
  const StageDurations stage{.forward = 1, .input_gradient = 1, .weight_gradient = 1};
  for (std::int32_t p = 1; p <= 8; ++p)
    for (std::int32_t m : {1, 3, 8, 16}) {
      // m + p − 1 times one forward and backward.
      EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::gpipe, p, 1, m, stage), 3.0 * (m + p - 1));
      EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::one_forward_one_backward, p, 1, m, stage),
                       3.0 * (m + p - 1));
    }
  for (std::int32_t p : {2, 4, 8})
    for (std::int32_t v : {2, 3, 4}) {
      // The bubble shrinks to 1 / v (Narayanan et al. 2021); a stage here is one of v.
      EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::interleaved, p, v, 2 * p, stage),
                       3.0 * (v * 2 * p + p - 1));
    }
  for (std::int32_t p : {2, 4, 8}) {
    // (p − 1)(F + B − W) remains of the bubble (Qi et al. 2024, table 1).
    EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::zero_bubble_h1, p, 1, 2 * p, stage), 3.0 * 2 * p + (p - 1));
  }
}

/// Start times by relaxing every dependency again and again: compute actions alone, no communication.
double relaxed_seconds(const Schedule& schedule, const ScheduleDurations& seconds) {
  using Node = std::tuple<bool, std::int32_t, std::int32_t>;  // gradient, stage, micro-batch
  std::map<Node, double> end_of;
  double step = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<Action>& actions : schedule.rank_actions) {
      double now = 0;
      for (std::size_t index = 0; index < actions.size(); ++index) {
        const auto arrival = [&](const Action& action) {
          if (action.kind == ActionKind::forward)
            return end_of[{false, action.stage - 1, action.micro_batch}];
          if (action.kind == ActionKind::weight_gradient) return 0.0;
          return end_of[{true, action.stage + 1, action.micro_batch}];
        };
        const bool pair = index + 1 < actions.size() && actions[index + 1].with_previous;
        now = std::max(now, arrival(actions[index]));
        if (pair) now = std::max(now, arrival(actions[index + 1]));
        const std::size_t end = index + (pair ? 2 : 1);
        std::vector<Node> made;
        for (; index < end; ++index) {
          const Action& action = actions[index];
          const StageDurations& stage = seconds.stages[static_cast<std::size_t>(action.stage)];
          const bool gradient = action.kind != ActionKind::forward;
          if (action.kind == ActionKind::forward) now += stage.forward;
          if (action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient)
            now += stage.input_gradient;
          if (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient)
            now += stage.weight_gradient;
          if (action.kind != ActionKind::weight_gradient)
            made.push_back({gradient, action.stage, action.micro_batch});
        }
        --index;
        for (const Node& node : made) {
          changed = changed || end_of[node] != now;
          end_of[node] = now;
        }
      }
      step = std::max(step, now);
    }
  }
  return step;
}

TEST(Simulate, AgreesWithAnotherWayToTheSameTimesForUnequalStages) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> duration(0.5, 2);
  for (const ScheduleCase& c : specs::all_small_cases()) {
    if (c.group != 0 || c.micro_batches % 4 != 1) continue;
    const Schedule schedule = c.generate();
    ScheduleDurations seconds = equal_stages(schedule.stages(), {});
    for (StageDurations& stage : seconds.stages)
      stage = {.forward = duration(random),
               .input_gradient = duration(random),
               .weight_gradient = duration(random)};
    ASSERT_NEAR(simulate(specs::lower(schedule), seconds).seconds, relaxed_seconds(schedule, seconds), 1e-9)
        << c;
  }
}

TEST(Simulate, CriticalPathIsWithoutGapsAndAddsUpToTheStep) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> duration(0.1, 2);
  for (const ScheduleCase& c : specs::all_small_cases()) {
    if (c.group != 0 || c.micro_batches % 5 != 0) continue;
    const Schedule schedule = c.generate();
    ScheduleDurations seconds = equal_stages(schedule.stages(), {}, duration(random));
    for (StageDurations& stage : seconds.stages)
      stage = {.forward = duration(random),
               .input_gradient = duration(random),
               .weight_gradient = duration(random),
               .gather = duration(random),
               .reduction = duration(random)};
    seconds.tied_reduction = duration(random);
    const Simulation simulation = simulate(
        specs::lower(schedule, {.tied_embeddings = true, .zero_stage = c.micro_batches % 2 == 0 ? 3 : 1}),
        seconds);
    ASSERT_FALSE(simulation.critical_path.empty());
    double now = 0;
    for (const std::size_t index : simulation.critical_path) {
      ASSERT_DOUBLE_EQ(simulation.tasks[index].start_seconds, now) << c;
      now = simulation.tasks[index].end_seconds;
    }
    ASSERT_DOUBLE_EQ(now, simulation.seconds) << c;
    double sum = 0;
    for (const CriticalShare& share : critical_shares(simulation)) sum += share.seconds;
    ASSERT_NEAR(sum, simulation.seconds, 1e-9) << c;
  }
}

TEST(Simulate, TransfersCostARoundTripFor1F1B) {
  const StageDurations stage{.forward = 1, .input_gradient = 1, .weight_gradient = 1};
  // One micro-batch: there and back.
  EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::one_forward_one_backward, 4, 1, 1, stage, 0.5),
                   12 + 2 * 3 * 0.5);
  // Many: each rank waits for the round trip of its in-flight micro-batches, so that the step is longer than
  // the slowest rank with one fill and drain: (Σ(f + b) + 2 Σc) / p per micro-batch (the bound of the first
  // rank).
  const double step = step_seconds(ScheduleKind::one_forward_one_backward, 4, 1, 64, stage, 0.5);
  const double textbook = 3.0 * (64 + 3) + 2 * 3 * 0.5;
  const double round_trip = 64 * (4 * 3 + 2 * 3 * 0.5) / 4;
  EXPECT_GT(step, textbook);
  EXPECT_GE(step, round_trip);
  EXPECT_LT(step, round_trip + 2 * 15);
}

TEST(Simulate, ALinkCarriesOneMessageAtATime) {
  // The link is the bottleneck: m messages one after the other, then the way on.
  const StageDurations stage{.forward = 1, .input_gradient = 0, .weight_gradient = 0};
  EXPECT_DOUBLE_EQ(step_seconds(ScheduleKind::gpipe, 2, 1, 5, stage, 10), 1 + 5 * 10 + 1 + 5 * 10);
}

TEST(Simulate, ReductionsOverlapWithWhatIsLeftToCompute) {
  // Two chunks on one rank: the second chunk's reduction hides behind the first chunk's backward.
  ScheduleDurations seconds =
      equal_stages(2, {.forward = 1, .input_gradient = 1, .weight_gradient = 1, .reduction = 2});
  const Schedule schedule = specs::generate_schedule(ScheduleKind::interleaved, 1, 2, 1);
  EXPECT_DOUBLE_EQ(simulate(specs::lower(schedule), seconds).seconds, 6 + 2);
  seconds.stages[1].reduction = 5;
  EXPECT_DOUBLE_EQ(simulate(specs::lower(schedule), seconds).seconds, 4 + 5 + 2);
}

TEST(Simulate, TiedReductionWaitsForBothEnds) {
  ScheduleDurations seconds =
      equal_stages(2, {.forward = 1, .input_gradient = 1, .weight_gradient = 1, .reduction = 1});
  seconds.tied_reduction = 4;
  const Schedule schedule = specs::generate_schedule(ScheduleKind::gpipe, 2, 1, 1);
  EXPECT_DOUBLE_EQ(simulate(specs::lower(schedule, {.tied_embeddings = true}), seconds).seconds, 6 + 4 + 1);
}

TEST(Simulate, GathersHideBehindTheActionBefore) {
  ScheduleDurations seconds =
      equal_stages(1, {.forward = 2, .input_gradient = 1, .weight_gradient = 1, .gather = 1});
  const Schedule schedule = specs::generate_schedule(ScheduleKind::gpipe, 1, 1, 3);
  // Only the first gather is exposed.
  EXPECT_DOUBLE_EQ(simulate(specs::lower(schedule, {.zero_stage = 3}), seconds).seconds, 1 + 12);
  seconds.stages[0].gather = 5;
  EXPECT_GE(simulate(specs::lower(schedule, {.zero_stage = 3}), seconds).seconds, 6 * 5);
}

TEST(Simulate, ExplainsTheStep) {
  const Schedule schedule = specs::generate_schedule(ScheduleKind::one_forward_one_backward, 2, 1, 4);
  ScheduleDurations seconds = equal_stages(2, {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  seconds.stages[1] = {.forward = 2, .input_gradient = 2, .weight_gradient = 2};
  EXPECT_EQ(explain(simulate(specs::lower(schedule), seconds)),
            "16.000 s  59.3 %  backward on pipeline rank 1\n"
            "8.000 s  29.6 %  forward on pipeline rank 1\n"
            "2.000 s   7.4 %  backward on pipeline rank 0\n"
            "1.000 s   3.7 %  forward on pipeline rank 0\n");
}

}  // namespace
}  // namespace planner
