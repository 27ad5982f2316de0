// Devices of unlike memory: the smallest bounds what is divided evenly, and stages may be cut for each.
// vllm-project/vllm issue 2317 (24 and 8 GB), determined-ai/determined issue 5418 (8 and 16 GB).
#include <gtest/gtest.h>

#include "planner/plan/plan_experiment.h"
#include "tests/cost_models/model_fixtures.h"

namespace planner {
namespace {

/// Two nodes of one device each; 550 million parameters, 18 bytes each where nothing is sharded.
specs::Experiment on_two(std::int64_t first_gib, std::int64_t second_gib) {
  specs::Experiment experiment =
      cost_models::testing::experiment(cost_models::testing::llama(8, 2048, 16, 16, 5504, 32000), 1, 16, 512);
  experiment.model.vocabulary_multiple = 1;
  experiment.training.steps = 1;
  specs::ClusterGroup& first = experiment.cluster.groups.front();
  first.node.devices = 1;
  specs::ClusterGroup second = first;
  first.node.device.memory_bytes = first_gib << 30;
  second.node.device.memory_bytes = second_gib << 30;
  second.node.device.name = "a100-of-other-memory";
  experiment.cluster.groups.push_back(second);
  experiment.search.zero_stage = {0};
  experiment.search.recomputation = {specs::Recomputation::none};
  experiment.search.micro_batch = {1};
  experiment.search.offload_optimizer = {specs::OffloadDevice::none};
  experiment.search.offload_activations = {specs::OffloadDevice::none};
  return experiment;
}

bool fits(const specs::Experiment& experiment) {
  const specs::Result<PlanOutcome> outcome = plan_experiment(experiment);
  return outcome.ok() && outcome.value->plan.has_value();
}

TEST(UnlikeMemory, EvenDataParallelismIsBoundedByTheSmallestNotTheMean) {
  specs::Experiment experiment = on_two(24, 8);
  experiment.search.pipeline = {1};
  experiment.search.tensor = {1};
  EXPECT_FALSE(fits(experiment));
  for (specs::ClusterGroup& group : experiment.cluster.groups) group.node.device.memory_bytes = 16ll << 30;
  EXPECT_TRUE(fits(experiment));
}

TEST(UnlikeMemory, AStageOnTheLargerDeviceHoldsMoreLayers) {
  specs::Experiment experiment = on_two(24, 6);
  experiment.search.pipeline = {2};
  experiment.search.tensor = {1};
  const specs::Result<PlanOutcome> outcome = plan_experiment(experiment);
  ASSERT_TRUE(outcome.ok()) << outcome.diagnostics.render();
  ASSERT_TRUE(outcome.value->plan);
  const auto& stages = outcome.value->plan->placement.stages;
  ASSERT_EQ(stages.size(), 2u);
  const auto& large = stages[stages[0].device_group == 0 ? 0 : 1];
  const auto& small = stages[stages[0].device_group == 0 ? 1 : 0];
  EXPECT_GT(large.units.size(), small.units.size());
}

TEST(UnlikeMemory, TheSlowerDeviceSetsThePaceOfAnEvenJob) {
  specs::Experiment experiment = on_two(40, 40);
  experiment.search.pipeline = {1};
  experiment.search.tensor = {1};
  experiment.search.unequal_shares = false;
  const auto seconds = [](const specs::Experiment& each) {
    const cost_models::Estimator estimator(each);
    specs::RegularPlacement placement;
    placement.data = 2;
    placement.accumulation = 8;
    specs::Placement whole = specs::regular_placement(placement, each.model.layers);
    whole.replica_shares = {{1, 8, 0}, {1, 8, 1}};
    return estimator.estimate(whole).step_seconds;
  };
  const double alike = seconds(experiment);
  specs::DeviceSpec& slow = experiment.cluster.groups.back().node.device;
  slow.peak_flops = {{specs::Precision::bf16, 312e12 / 4}};
  const double unlike = seconds(experiment);
  experiment.cluster.groups.front() = experiment.cluster.groups.back();
  EXPECT_NEAR(unlike, seconds(experiment), 0.02 * unlike);
  EXPECT_GT(unlike, 1.5 * alike);
}

}  // namespace
}  // namespace planner
