#include "planner/space/written_out_choices.h"

#include <gtest/gtest.h>

#include "specs/language/catalog.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

/// Cuts inside layers are not this stack's: of the places before a unit every second is none, and a way that
/// leaves too few of them for the stages to come must end at once, or there are 2^70 of them.
TEST(WrittenOutChoices, OfNearlyAsManyStagesAsLayersAreVisitedWithoutGoingThroughWhatLeadsNowhere) {
  const specs::Experiment experiment = cost_models::testing::experiment(
      cost_models::testing::llama(40, 1024, 8, 8, 4096, 32000), 5, 40, 1024, "megatron-core");
  const auto stack = specs::catalog_stack("megatron-core");
  ASSERT_TRUE(stack.ok());
  const WrittenOutChoices choices(experiment, *stack);
  specs::RegularPlacement outer;
  outer.pipeline = 38;
  outer.accumulation = 40;
  Count visited = 0;
  choices.for_each(outer, [&](const specs::Placement& placement) {
    EXPECT_EQ(placement.stages.back().units.end, 2 * 40 + 2);
    ++visited;
  });
  EXPECT_EQ(visited, choices.count(outer));
  EXPECT_GT(visited, 700);
}

}  // namespace
}  // namespace planner
