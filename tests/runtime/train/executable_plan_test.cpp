#include "runtime/train/executable_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "specs/schedule/verify.h"
#include "tests/e2e/small_plan.h"

namespace runtime {
namespace {

using testing::HasSubstr;

std::string errors_of(const specs::Plan& plan) {
  const auto schedule = executable_schedule(plan, "plan.json");
  EXPECT_FALSE(schedule.ok());
  return schedule.diagnostics.render();
}

TEST(ExecutablePlan, IsTheLoweredScheduleOfThePlan) {
  const auto schedule = executable_schedule(e2e::make_plan({.tensor = 2, .pipeline = 2}), "plan.json");
  ASSERT_TRUE(schedule.ok()) << schedule.diagnostics.render();
  EXPECT_TRUE(specs::verify(*schedule).empty());
  const auto has = [&](specs::ActionKind kind) {
    for (const auto& actions : schedule->rank_actions)
      for (const specs::Action& action : actions)
        if (action.kind == kind) return true;
    return false;
  };
  EXPECT_TRUE(has(specs::ActionKind::send_activation));
  EXPECT_TRUE(has(specs::ActionKind::reduce_tied));
}

TEST(ExecutablePlan, EveryFeatureThatIsNotImplementedIsTold) {
  specs::Plan plan = e2e::make_plan({.tensor = 2});
  plan.inputs.training.precision = specs::Precision::fp8;
  plan.inputs.cluster.groups.front().node.device.generation = "hopper";
  const std::string errors = errors_of(plan);
  EXPECT_THAT(errors, HasSubstr("plan.json: error: precision fp8 is not implemented"));
  EXPECT_THAT(errors, HasSubstr("is a GPU"));
}

TEST(ExecutablePlan, EveryZeroStageIsExecutedAndFromTheSecondOnRefusedBesideAPipeline) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const auto sharded = executable_schedule(e2e::make_plan({.data = 2, .zero_stage = stage}), "plan.json");
    EXPECT_TRUE(sharded.ok()) << sharded.diagnostics.render();
    const specs::Plan pipelined = e2e::make_plan({.pipeline = 2, .data = 2, .zero_stage = stage});
    if (stage < 2)
      EXPECT_TRUE(executable_schedule(pipelined, "plan.json").ok());
    else
      EXPECT_THAT(errors_of(pipelined),
                  HasSubstr("beside a pipeline is not executed: gradients must stay whole"));
  }
}

TEST(ExecutablePlan, ShardsWithinNodesThatHoldUnequalNumbersOfReplicasAreRefused) {
  specs::Plan plan = e2e::make_plan({.data = 4, .zero_stage = 2});
  for (specs::PipelineStage& stage : plan.placement.stages) stage.zero.scope = specs::ShardScope::node;
  plan.ranks.ranges.front().ranks_per_node = 2;
  EXPECT_TRUE(executable_schedule(plan, "plan.json").ok());
  plan.ranks.ranges.front().ranks_per_node = 3;
  EXPECT_THAT(errors_of(plan), HasSubstr("the nodes hold unequal numbers of a parameter's replicas"));
}

TEST(ExecutablePlan, AModelThatIsNotImplementedIsRefusedBeforeAnyRankStarts) {
  specs::Plan plan = e2e::make_plan({});
  plan.inputs.model.attention.qk_norm = true;
  EXPECT_THAT(errors_of(plan), HasSubstr("plan.json: error: norms on queries and keys are not implemented"));
}

}  // namespace
}  // namespace runtime
