// Every plan in the space of specs/catalog/stacks/dsrun.toml executes, and trains as one rank does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/capabilities.h"
#include "specs/plan/placement_check.h"
#include "specs/plan/plan_json.h"
#include "tests/runtime/pool_fixture.h"
#include "tests/stack_profile/plan_job.h"
#include "tests/stack_profile/random_plans.h"
#include "tests/stack_profile/space_coverage.h"

namespace runtime {
namespace {

/// Of a loss, relative; in 16 bits absolute.
double bar_of(specs::Precision precision) {
  if (precision == specs::Precision::fp64) return 1e-11;
  return precision == specs::Precision::fp32 ? 1e-5 : 0.02;
}

class StackProfile : public PoolFixture<8> {
 protected:
  static void expect_plans_train_as_one_rank(const std::vector<specs::Plan>& plans) {
    for (const specs::Plan& plan : plans) {
      SCOPED_TRACE(planner::describe(plan));
      const auto illegal = specs::placement_violations(plan.placement, plan.inputs.model, plan.inputs.cluster,
                                                       plan.inputs.training);
      for (const specs::PlacementViolation& broken : illegal)
        ADD_FAILURE() << broken.field << ": " << broken.message;
      try {
        expect_trains_as_one_rank(plan);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }

 private:
  static void expect_trains_as_one_rank(const specs::Plan& plan) {
    const std::int64_t ranks = plan.placement.pipeline_ranks() * plan.placement.stages.front().mesh.ranks();
    const std::vector<double> found = losses_of_plan(*pool_, specs::write_plan(plan), ranks);
    const std::vector<double> expected =
        losses_of_plan(*pool_, specs::write_plan(planner::single_rank(plan)), 1);
    ASSERT_EQ(found.size(), expected.size());
    const specs::Precision precision = plan.inputs.training.precision;
    const bool wide = precision == specs::Precision::fp64 || precision == specs::Precision::fp32;
    double most = 0;
    // Delayed in part, the first step alone has the weights of one rank.
    const bool in_part =
        plan.placement.stages.front().offload.delayed_update && !planner::delays_everything(plan);
    for (std::size_t step = 0; step < found.size(); ++step) {
      ASSERT_TRUE(std::isfinite(found[step]));
      if (step > 0 && in_part) continue;
      most = std::max(most, std::abs(found[step] - expected[step]) / (wide ? expected[step] : 1));
    }
    std::printf("%.1e  %s\n", most, planner::describe(plan).c_str());
    std::fflush(stdout);
    EXPECT_LE(most, bar_of(precision));
  }
};

class NightlyStackProfile : public StackProfile {};

/// So many as they come; then, of the next ones, those with a value of some dimension that none before has.
std::vector<specs::Plan> everyday_plans() {
  constexpr int all_of_them = 40, looked_at = 3000;
  planner::RandomPlans random(1);
  std::set<std::string> missing = planner::values_of(capabilities());
  std::vector<specs::Plan> plans;
  for (int drawn = 0; drawn < looked_at && (drawn < all_of_them || !missing.empty()); ++drawn) {
    specs::Plan plan = random.next();
    bool adds = false;
    for (const std::string& value : planner::values_of(plan)) adds |= missing.erase(value) > 0;
    if (adds || drawn < all_of_them) plans.push_back(std::move(plan));
  }
  return plans;
}

TEST_F(StackProfile, PlansDrawnFromItsWholeSpaceTrainAsOneRank) {
  expect_plans_train_as_one_rank(everyday_plans());
}

/// Of those above.
TEST(StackProfileCoverage, EveryValueOfEveryDimensionIsExecuted) {
  std::set<std::string> executed;
  for (const specs::Plan& plan : everyday_plans()) executed.merge(planner::values_of(plan));
  for (const std::string& value : planner::values_of(capabilities()))
    EXPECT_TRUE(executed.contains(value)) << value << " is in no plan that is executed";
}

TEST_F(NightlyStackProfile, AThousandPlansDrawnFromItsWholeSpaceTrainAsOneRank) {
  planner::RandomPlans random(2);
  std::vector<specs::Plan> plans;
  for (int drawn = 0; drawn < 1000; ++drawn) plans.push_back(random.next());
  expect_plans_train_as_one_rank(plans);
}

}  // namespace
}  // namespace runtime
