// The way from an objective back to the step that has it.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "planner/pricing/pricing.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

constexpr std::array objectives{specs::Objective::step_time, specs::Objective::cost, specs::Objective::energy,
                                specs::Objective::goodput};

TEST(Objectives, NoLongerStepHasTheObjectiveAndNoneThatIsShorterByMoreThanRoundingIsMissed) {
  std::mt19937 random(3);
  const auto any = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  for (int round = 0; round < 200; ++round) {
    specs::Experiment experiment = cost_models::testing::experiment(
        cost_models::testing::llama(4, 2048, 16, 16, 5632, 32000), 8, 64, 2048);
    experiment.cluster.groups.front().node.price_per_hour_dollars = 10;
    experiment.cluster.groups.front().node.power_watts = 1000;
    experiment.cluster.failures_per_node_hour = round % 5 == 0 ? 0 : any(1e-6, 10);
    experiment.cluster.restart_seconds = any(1, 10000);
    experiment.training.checkpoint_every = round % 2 == 0 ? 0 : static_cast<std::int64_t>(any(1, 1e5));
    const cost_models::Estimator estimator(experiment);
    for (const specs::Objective objective : objectives) {
      const double step = any(1e-3, 1e3);
      const double value = objective_of_step(objective, estimator, step, 8);
      const double longest = longest_step(objective, estimator, value, 8);
      EXPECT_GE(longest, step) << specs::name_of(objective);
      EXPECT_LE(longest, step * (1 + 1e-8)) << specs::name_of(objective);
    }
    EXPECT_EQ(longest_step(specs::Objective::goodput, estimator, INFINITY, 8), INFINITY);
  }
}

TEST(Objectives, WhereNothingHasAPriceEveryStepIsAsGood) {
  const cost_models::Estimator estimator(cost_models::testing::experiment(
      cost_models::testing::llama(4, 2048, 16, 16, 5632, 32000), 8, 64, 2048));
  EXPECT_EQ(longest_step(specs::Objective::cost, estimator, 0, 8), INFINITY);
}

}  // namespace
}  // namespace planner
