#include "planner/mixed_cluster.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "planner/plan_experiment.h"
#include "planner/simulate/placement_simulation.h"
#include "specs/plan/placement_check.h"
#include "specs/plan/plan_check.h"
#include "tests/cost_models/model_fixtures.h"
#include "tests/planner/small_experiments.h"

namespace planner {
namespace {

/// `slow` nodes of A100 and `fast` nodes of devices three times as quick, four devices each.
specs::Experiment mixed_experiment(std::int64_t layers, std::int64_t slow, std::int64_t fast,
                                   std::int64_t global_batch) {
  specs::Experiment experiment = cost_models::testing::experiment(
      cost_models::testing::llama(layers, 4096, 32, 32, 11008, 32000), slow, global_batch, 2048);
  specs::ClusterGroup& a100 = experiment.cluster.groups.front();
  a100.node.devices = 4;
  specs::ClusterGroup h100 = a100;
  h100.nodes = fast;
  h100.node.device.name = "h100-sxm-80gb";
  h100.node.device.generation = "hopper";
  h100.node.device.memory_bytes_per_second = 3.35e12;
  h100.node.device.peak_flops = {{specs::Precision::bf16, 989e12}};
  h100.node.device.multiprocessors = 132;
  experiment.cluster.groups.push_back(h100);
  return experiment;
}

/// Calls `visit` for every placement of the space that lies over the two groups: all cuts in both orders of
/// the groups, all shares.
void for_each_placement(const specs::Experiment& experiment, const Space& space,
                        const std::function<void(const specs::Placement&)>& visit) {
  const std::int64_t layers = experiment.model.layers;
  const auto& groups = experiment.cluster.groups;
  const auto lay_stages = [&](const specs::RegularPlacement& outer) {
    const std::int64_t rank = outer.tensor * outer.context * outer.data;
    if (outer.pipeline < 2 || outer.virtual_stages > 1 || groups[0].devices() % rank != 0 ||
        groups[1].devices() % rank != 0)
      return;
    for (const std::int64_t first : {0, 1}) {
      specs::Placement placement = specs::regular_placement(outer, layers);
      const std::int64_t ahead = groups[static_cast<std::size_t>(first)].devices() / rank;
      for (std::int64_t stage = 0; stage < outer.pipeline; ++stage)
        placement.stages[static_cast<std::size_t>(stage)].device_group = stage < ahead ? first : 1 - first;
      const std::function<void(std::size_t, std::int64_t)> cut = [&](std::size_t stage, std::int64_t unit) {
        specs::UnitRange& units = placement.stages[stage].units;
        units.first = unit;
        if (stage + 1 == placement.stages.size()) {
          units.end = 2 * layers + 2;
          visit(placement);
          return;
        }
        const auto left = static_cast<std::int64_t>(placement.stages.size() - stage) - 1;
        for (std::int64_t end = std::max<std::int64_t>(unit + 1, 2); end + left <= 2 * layers + 1; ++end) {
          units.end = end;
          cut(stage + 1, end);
        }
      };
      cut(0, 0);
    }
  };
  const auto lay_replicas = [&](const specs::RegularPlacement& outer) {
    const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
    if (groups[0].devices() % replica != 0 || groups[1].devices() % replica != 0) return;
    const std::int64_t counts[] = {groups[0].devices() / replica, groups[1].devices() / replica};
    for (std::int64_t share = 1; share * counts[0] < outer.data * outer.accumulation; ++share) {
      const std::int64_t rest = outer.data * outer.accumulation - share * counts[0];
      if (rest % counts[1] != 0) continue;
      specs::Placement placement = specs::regular_placement(outer, layers);
      placement.replica_shares = {{counts[0], share, 0}, {counts[1], rest / counts[1], 1}};
      visit(placement);
    }
  };
  for (const MeshSpace& mesh : space.meshes())
    space.for_each(mesh, [&](const specs::RegularPlacement& outer) {
      if (outer.order != specs::default_axis_order) return;
      lay_stages(outer);
      lay_replicas(outer);
    });
}

bool fits(const cost_models::Estimator& estimator, const specs::Placement& placement,
          const specs::CostBreakdown& cost) {
  for (const specs::MemoryEntry& entry : cost.memory) {
    std::int64_t bytes = 0;
    for (const specs::MemoryEntry& other : cost.memory)
      if (other.pipeline_rank == entry.pipeline_rank && other.location == specs::MemoryLocation::device)
        bytes += other.bytes;
    for (const specs::PipelineStage& stage : placement.stages)
      if (stage.pipeline_rank == entry.pipeline_rank &&
          bytes > estimator.usable_device_bytes(stage.device_group) + 64)
        return false;
  }
  return true;
}

TEST(MixedCluster, PlanIsTheBestOfAllCutsAndSharesWithinItsGap) {
  specs::StackSpec stack = testing::able_stack();
  stack.cuts_inside_layers = true;
  stack.recomputations = {specs::Recomputation::none};
  stack.zero_stages = {1};
  stack.shard_scopes = {specs::ShardScope::world};
  int unequal_shares = 0, unequal_stages = 0;
  for (const std::int64_t layers : {4, 6})
    for (const std::int64_t fast : {1, 2})
      for (const std::int64_t batch : {12, 24, 48})
        for (const std::int64_t memory_gib : {40, 80}) {
          specs::Experiment experiment = mixed_experiment(layers, 1, fast, batch);
          experiment.cluster.groups[0].node.device.memory_bytes = memory_gib << 30;
          experiment.search.tensor = {2, 4};
          const cost_models::Estimator estimator(experiment);
          const Space space(experiment, stack);
          double best = INFINITY;
          std::size_t count = 0;
          for_each_placement(experiment, space, [&](const specs::Placement& placement) {
            ++count;
            const specs::CostBreakdown cost = estimator.estimate(placement);
            if (fits(estimator, placement, cost)) best = std::min(best, cost.step_seconds);
          });
          const MixedResult result = plan_mixed_cluster(experiment, stack, space, estimator);
          SCOPED_TRACE(::testing::Message() << layers << " layers, " << fast << " fast, batch " << batch
                                            << ", " << memory_gib << " GiB");
          EXPECT_EQ(result.certificate.space_candidates, std::to_string(count));
          ASSERT_EQ(result.best.has_value(), std::isfinite(best));
          if (!result.best) continue;
          EXPECT_TRUE(specs::placement_violations(*result.best, experiment.model, experiment.cluster,
                                                  experiment.training)
                          .empty());
          EXPECT_NEAR(result.step_seconds, estimator.estimate(*result.best).step_seconds,
                      1e-9 * result.step_seconds);
          EXPECT_GE(result.step_seconds, best * (1 - 1e-9));
          EXPECT_LE(result.step_seconds * (1 - result.certificate.gap), best * (1 + 1e-9));
          EXPECT_LE(result.certificate.gap, 0.005);
          EXPECT_NEAR(simulate_step(estimator, *result.best).seconds(), result.step_seconds,
                      0.02 * result.step_seconds);
          (result.best->replica_shares.empty() ? unequal_stages : unequal_shares) += 1;
        }
  EXPECT_GT(unequal_shares + unequal_stages, 12);
}

TEST(MixedCluster, FasterDevicesHoldMoreLayersAndRunMoreMicroBatches) {
  specs::StackSpec stack = testing::able_stack();
  specs::Experiment experiment = mixed_experiment(24, 1, 1, 48);
  experiment.search.pipeline = {2};
  experiment.search.unequal_shares = false;
  const cost_models::Estimator estimator(experiment);
  const MixedResult stages = plan_mixed_cluster(experiment, stack, Space(experiment, stack), estimator);
  ASSERT_TRUE(stages.best);
  const auto& parts = stages.best->stages;
  const auto& fast = parts[parts[0].device_group == 1 ? 0 : 1];
  const auto& slow = parts[parts[0].device_group == 1 ? 1 : 0];
  EXPECT_GT(fast.units.size(), 1.5 * static_cast<double>(slow.units.size()));

  experiment.search.pipeline = {1};
  experiment.search.unequal_shares = true;
  const MixedResult shares = plan_mixed_cluster(experiment, stack, Space(experiment, stack), estimator);
  ASSERT_TRUE(shares.best);
  ASSERT_EQ(shares.best->replica_shares.size(), 2u);
  EXPECT_GT(shares.best->replica_shares[1].micro_batches, shares.best->replica_shares[0].micro_batches);
}

TEST(MixedCluster, PlanIsWholeAndWarnsOfItsGenerations) {
  specs::Experiment experiment = mixed_experiment(24, 2, 2, 64);
  experiment.model.vocabulary_multiple = 1;
  experiment.training.steps = 1;
  for (const bool shares : {false, true}) {
    experiment.search.unequal_shares = shares;
    experiment.search.pipeline = {shares ? 1 : 4};
    const specs::Result<PlanOutcome> outcome = plan_experiment(experiment);
    ASSERT_TRUE(outcome.ok());
    ASSERT_TRUE(outcome.value->plan);
    const specs::Plan& plan = *outcome.value->plan;
    EXPECT_EQ(plan.world_size, 16);
    EXPECT_EQ(plan.certificate.method, mixed_cluster_method);
    for (const specs::PlanViolation& violation : specs::plan_violations(plan))
      ADD_FAILURE() << violation.pointer << ": " << violation.message;
    EXPECT_TRUE(std::any_of(plan.advice.begin(), plan.advice.end(),
                            [](const specs::Advice& advice) { return advice.rule == "mixed-generations"; }));
  }
}

}  // namespace
}  // namespace planner
