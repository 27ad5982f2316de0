#include "planner/questions/sweep.h"

#include <gtest/gtest.h>

#include "planner/questions/pareto_front.h"
#include "specs/language/read_experiment.h"

namespace planner {
namespace {

/// Points of 1, 2 and 4 nodes, all with the same run to train.
std::vector<specs::SweepPoint> points_by_nodes() {
  const auto points = specs::read_sweep_text(R"(
[model]
preset = "gpt2-medium"
[cluster]
node = "dgx-a100-80gb"
[training]
global_batch = 64
sequence_length = 1024
stack = "megatron-core"
tokens = 1e12
[search]
micro_batch = [2]
[sweep]
"cluster.nodes" = [4, 1, 2]
)",
                                             "nodes.toml");
  EXPECT_TRUE(points.ok()) << points.diagnostics.render();
  return *points;
}

TEST(Sweep, NamesTheFewestDevicesThatAreFastEnough) {
  const std::vector<SweepOutcome> outcomes = run_sweep(points_by_nodes(), {}, false);
  const double on_8 = plan_of(outcomes[1])->prediction.run_seconds;
  const double on_16 = plan_of(outcomes[2])->prediction.run_seconds;
  const double on_32 = plan_of(outcomes[0])->prediction.run_seconds;
  ASSERT_GT(on_8, on_16);
  ASSERT_GT(on_16, on_32);
  EXPECT_EQ(fewest_devices_within(outcomes, on_8), 1u);
  EXPECT_EQ(fewest_devices_within(outcomes, 0.99 * on_8), 2u);
  EXPECT_EQ(fewest_devices_within(outcomes, 0.99 * on_16), 0u);
  EXPECT_EQ(fewest_devices_within(outcomes, 0.99 * on_32), std::nullopt);
}

TEST(Sweep, TakesPlansThatWereMadeBeforeAndMakesTheOthers) {
  const std::vector<specs::SweepPoint> points = points_by_nodes();
  const std::vector<SweepOutcome> first = run_sweep(points, {}, false);
  std::vector<std::size_t> finished;
  SweepRun again;
  again.made_before = [&](std::size_t point) {
    return point == 1 ? std::nullopt : std::optional(*plan_of(first[point]));
  };
  again.finished = [&](std::size_t point, const SweepOutcome&) { finished.push_back(point); };
  const std::vector<SweepOutcome> second = run_sweep(points, again, false);
  EXPECT_EQ(finished, std::vector<std::size_t>{1});
  for (std::size_t point = 0; point < points.size(); ++point)
    EXPECT_EQ(*plan_of(second[point]), *plan_of(first[point]));
}

TEST(Sweep, APlanAnswersItsOwnExperimentAlone) {
  const std::vector<specs::SweepPoint> points = points_by_nodes();
  specs::Plan plan = *plan_of(run_sweep({points[1]}, {}, false).front());
  EXPECT_TRUE(answers(plan, points[1].experiment));
  EXPECT_FALSE(answers(plan, points[2].experiment));
  specs::Experiment restricted = points[1].experiment;
  restricted.search.tensor = {1};
  EXPECT_FALSE(answers(plan, restricted));
  plan.cost_model_version += "x";
  EXPECT_FALSE(answers(plan, points[1].experiment));
}

TEST(ParetoFront, HoldsWhatNothingElseBeats) {
  const std::vector<ParetoPoint> points{{1, 5, 5}, {5, 1, 5}, {2, 2, 2}, {2, 2, 3}, {2, 2, 2}};
  EXPECT_EQ(pareto_front(points), (std::vector<bool>{true, true, true, false, true}));
  EXPECT_TRUE(pareto_front(std::vector<ParetoPoint>{}).empty());
}

TEST(ParetoFront, AnUnknownCostIsNotTheLowest) {
  // By time, cost and memory; the first is faster and as small, the cost of the second unknown.
  EXPECT_EQ(pareto_front({{1, 5, 10}, {2, 0, 10}}), (std::vector<bool>{true, false}));
  EXPECT_EQ(pareto_front({{1, 5, 10}, {2, 4, 10}}), (std::vector<bool>{true, true}));
  EXPECT_EQ(pareto_front({{1, 0, 10}, {2, 4, 9}}), (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace planner
