#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "planner/certificate/verify_certificate.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/mixed_pricer.h"
#include "planner/search/branch_and_bound.h"
#include "planner/simulate/placement_simulation.h"
#include "planner/space/written_out_space.h"
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

/// Calls `visit` for every placement over the groups: all cuts and recomputed layers in all orders of the
/// groups, all shares.
class AllPlacements {
 public:
  using Visit = std::function<void(const specs::Placement&)>;

  AllPlacements(const specs::Experiment& experiment, const specs::StackSpec& stack, Visit visit)
      : experiment_(experiment),
        groups_(experiment.cluster.groups),
        layers_(experiment.model.layers),
        inside_layers_(stack.cuts_inside_layers),
        visit_(std::move(visit)) {
    const WrittenOutSpace space(experiment, stack);
    for (const WrittenOutMesh& mesh : space.meshes())
      space.for_each_member(mesh, [&](const specs::RegularPlacement& outer) {
        lay_stages(outer);
        lay_replicas(outer);
      });
  }

 private:
  bool divides_groups(std::int64_t devices) const {
    return std::all_of(groups_.begin(), groups_.end(),
                       [&](const specs::ClusterGroup& group) { return group.devices() % devices == 0; });
  }

  void lay_stages(const specs::RegularPlacement& outer) {
    const std::int64_t rank = outer.tensor * outer.context * outer.data;
    if (outer.pipeline < 2 || outer.virtual_stages > 1 || !divides_groups(rank)) return;
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0u);
    do {
      specs::Placement placement = specs::regular_placement(outer, layers_);
      std::size_t stage = 0;
      for (const std::size_t group : order)
        for (std::int64_t number = 0; number < groups_[group].devices() / rank; ++number)
          placement.stages[stage++].device_group = static_cast<std::int64_t>(group);
      for (specs::PipelineStage& each : placement.stages) each.recomputation.clear();
      cut(placement, outer.recomputation, 0, 0, false);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  void cut(specs::Placement& placement, specs::Recomputation mode, std::size_t stage, std::int64_t unit,
           bool recomputes) {
    if (stage == placement.stages.size()) {
      if (recomputes || mode == specs::Recomputation::none) visit_(placement);
      return;
    }
    const bool last = stage + 1 == placement.stages.size();
    const auto left = static_cast<std::int64_t>(placement.stages.size() - stage) - 1;
    const std::int64_t whole = 2 * layers_ + 2;
    for (std::int64_t end = last ? whole : std::max<std::int64_t>(unit + 1, 2); end + left <= whole; ++end) {
      if (!last && (end > whole - 2 || (!inside_layers_ && end % 2 == 0))) continue;
      specs::PipelineStage& of_stage = placement.stages[stage];
      of_stage.units = {unit, end};
      const std::int64_t touched = specs::layers_touched(of_stage.units, layers_);
      for (std::int64_t count = 0; count <= (mode == specs::Recomputation::none ? 0 : touched); ++count) {
        of_stage.recomputation.clear();
        if (count > 0) of_stage.recomputation.push_back({count, mode});
        if (count > 0 && count < touched)
          of_stage.recomputation.push_back({touched - count, specs::Recomputation::none});
        cut(placement, mode, stage + 1, end, recomputes || count > 0);
      }
      of_stage.recomputation.clear();
    }
  }

  void lay_replicas(const specs::RegularPlacement& outer) {
    const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
    if (groups_.size() != 2 || !experiment_.search.unequal_shares || !divides_groups(replica)) return;
    const std::int64_t first = groups_[0].devices() / replica, second = groups_[1].devices() / replica;
    for (std::int64_t share = 1; share * first < outer.data * outer.accumulation; ++share) {
      const std::int64_t rest = outer.data * outer.accumulation - share * first;
      if (rest % second != 0) continue;
      specs::Placement placement = specs::regular_placement(outer, layers_);
      placement.replica_shares = {{first, share, 0}, {second, rest / second, 1}};
      visit_(placement);
    }
  }

  const specs::Experiment& experiment_;
  const std::vector<specs::ClusterGroup>& groups_;
  const std::int64_t layers_;
  const bool inside_layers_;
  const Visit visit_;
};

struct Searched {
  SearchResult result;
  std::optional<specs::Placement> placement;
};

Searched search(const specs::Experiment& experiment, const specs::StackSpec& stack,
                const cost_models::Estimator& estimator) {
  const Space space(experiment, stack);
  const MixedPricer pricer(experiment, stack, estimator);
  Searched searched{branch_and_bound(experiment, space, estimator, pricer), std::nullopt};
  if (searched.result.best) searched.placement = pricer.placement(searched.result.best->placement);
  return searched;
}

/// Holds a search against all placements, priced one by one with the full account.
Searched expect_optimum(const specs::Experiment& experiment, const specs::StackSpec& stack) {
  const cost_models::Estimator estimator(experiment);
  double best = INFINITY;
  std::size_t count = 0;
  const AllPlacements all(experiment, stack, [&](const specs::Placement& placement) {
    ++count;
    if (!estimator.fits(placement).both()) return;
    best = std::min(best, objective_of(experiment.search.objective, estimator.estimate(placement)));
  });
  Searched searched = search(experiment, stack, estimator);
  const SearchResult& result = searched.result;
  EXPECT_EQ(result.candidates, Count(count));
  EXPECT_EQ(result.priced + result.infeasible + result.bounded, Count(count));
  EXPECT_EQ(result.best.has_value(), std::isfinite(best));
  if (!result.best || !std::isfinite(best)) return searched;
  EXPECT_TRUE(specs::placement_violations(*searched.placement, experiment.model, experiment.cluster,
                                          experiment.training)
                  .empty());
  EXPECT_TRUE(estimator.fits(*searched.placement).both());
  const double found = result.best->price.objective;
  EXPECT_NEAR(found, objective_of(experiment.search.objective, estimator.estimate(*searched.placement)),
              1e-9 * found);
  EXPECT_GE(found, best * (1 - 1e-9));
  EXPECT_LE(found * (1 - result.gap()), best * (1 + 1e-9));
  EXPECT_LE(result.gap(), 0.005);
  return searched;
}

TEST(MixedCluster, PlanIsTheBestOfAllCutsAndSharesWithinItsGap) {
  specs::StackSpec stack = testing::able_stack();
  stack.cuts_inside_layers = true;
  stack.recomputations = {specs::Recomputation::none};
  stack.zero_stages = {1};
  stack.shard_scopes = {specs::ShardScope::world};
  int found = 0;
  for (const std::int64_t layers : {4, 6})
    for (const std::int64_t fast : {1, 2})
      for (const std::int64_t batch : {12, 24, 48})
        for (const std::int64_t memory_gib : {40, 80}) {
          specs::Experiment experiment = mixed_experiment(layers, 1, fast, batch);
          experiment.cluster.groups[0].node.device.memory_bytes = memory_gib << 30;
          experiment.search.tensor = {2, 4};
          SCOPED_TRACE(::testing::Message() << layers << " layers, " << fast << " fast, batch " << batch
                                            << ", " << memory_gib << " GiB");
          const Searched searched = expect_optimum(experiment, stack);
          if (!searched.placement) continue;
          ++found;
          const double step = searched.result.best->price.step_seconds;
          EXPECT_NEAR(simulate_step(cost_models::Estimator(experiment), *searched.placement).seconds(), step,
                      0.02 * step);
        }
  EXPECT_GT(found, 12);
}

TEST(MixedCluster, RandomClustersGiveTheBestOfAllPlacements) {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random));
  };
  int by_stages = 0, by_shares = 0, nothing = 0, proven = 0;
  for (int number = 0; number < 120; ++number) {
    SCOPED_TRACE(::testing::Message() << "cluster " << number);
    specs::StackSpec stack = testing::able_stack();
    stack.cuts_inside_layers = pick({0, 1}) == 1;
    stack.zero_stages = {pick({0, 1}), 3};
    stack.shard_scopes = {specs::ShardScope::world};
    stack.recomputations = {specs::Recomputation::none};
    if (pick({0, 1, 2}) == 0) stack.recomputations.push_back(specs::Recomputation::full);
    if (pick({0, 1, 2, 3}) == 0) stack.recomputations.erase(stack.recomputations.begin());
    if (stack.recomputations.empty()) stack.recomputations = {specs::Recomputation::selective};
    if (pick({0, 1}) == 0) stack.optimizer_offload = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
    if (pick({0, 1, 2}) == 0) stack.activation_offload = stack.optimizer_offload;
    specs::Experiment experiment =
        mixed_experiment(pick({2, 3, 4}), pick({1, 2}), pick({1, 2}), pick({4, 6, 8, 12}));
    auto& groups = experiment.cluster.groups;
    for (specs::ClusterGroup& group : groups) {
      group.node.devices = pick({1, 2, 4});
      group.node.device.memory_bytes = pick({6, 10, 16, 24, 80}) << 30;
      group.node.host_memory_bytes = pick({8, 64, 1000}) << 30;
    }
    if (pick({0, 1, 2, 3, 4}) == 0) groups.push_back(groups.front());
    if (pick({0, 1, 2}) == 0) experiment.cluster.network.node_bytes_per_second *= 0.05;
    experiment.model.tied_embeddings = pick({0, 1}) == 1;
    using enum specs::OffloadDevice;
    const std::vector<specs::OffloadOption> halves{none, {cpu, 4}, {cpu, 8}, {nvme, 4}, {nvme, 8}};
    experiment.search.offload_optimizer = experiment.search.offload_parameters =
        experiment.search.offload_activations = halves;
    experiment.search.context = {1};
    experiment.search.sequence_parallel = {true};
    experiment.search.unequal_shares = pick({0, 1, 1}) == 1;
    constexpr std::array objectives{specs::Objective::step_time, specs::Objective::cost,
                                    specs::Objective::energy, specs::Objective::goodput};
    experiment.search.objective = objectives[random() % objectives.size()];
    experiment.cluster.failures_per_node_hour = 0.001;
    const Searched searched = expect_optimum(experiment, stack);
    if (!searched.placement) {
      ++nothing;
      continue;
    }
    (searched.placement->replica_shares.empty() ? by_stages : by_shares) += 1;
    proven += searched.result.gap() == 0 ? 1 : 0;
  }
  EXPECT_GT(by_stages, 20);
  EXPECT_GT(by_shares, 10);
  EXPECT_GT(nothing, 2);
  EXPECT_GT(proven, (by_stages + by_shares) / 2);
}

TEST(MixedCluster, FasterDevicesHoldMoreLayersAndRunMoreMicroBatches) {
  specs::StackSpec stack = testing::able_stack();
  specs::Experiment experiment = mixed_experiment(24, 1, 1, 48);
  experiment.search.pipeline = {2};
  experiment.search.unequal_shares = false;
  const cost_models::Estimator estimator(experiment);
  const Searched stages = search(experiment, stack, estimator);
  ASSERT_TRUE(stages.placement);
  const auto& parts = stages.placement->stages;
  const auto& fast = parts[parts[0].device_group == 1 ? 0 : 1];
  const auto& slow = parts[parts[0].device_group == 1 ? 1 : 0];
  EXPECT_GT(fast.units.size(), 1.5 * static_cast<double>(slow.units.size()));

  experiment.search.pipeline = {1};
  experiment.search.unequal_shares = true;
  const Searched shares = search(experiment, stack, estimator);
  ASSERT_TRUE(shares.placement);
  ASSERT_EQ(shares.placement->replica_shares.size(), 2u);
  EXPECT_GT(shares.placement->replica_shares[1].micro_batches,
            shares.placement->replica_shares[0].micro_batches);
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
    const specs::Result<Verification> verification = verify_certificate(plan);
    ASSERT_TRUE(verification.ok());
    for (const VerifyFinding& finding : verification->findings) ADD_FAILURE() << finding.message;
    EXPECT_EQ(verification->counted_candidates, plan.certificate.space_candidates);
    for (const specs::PlanViolation& violation : specs::plan_violations(plan))
      ADD_FAILURE() << violation.pointer << ": " << violation.message;
    EXPECT_TRUE(std::any_of(plan.advice.begin(), plan.advice.end(),
                            [](const specs::Advice& advice) { return advice.rule == "mixed-generations"; }));
  }
}

}  // namespace
}  // namespace planner
