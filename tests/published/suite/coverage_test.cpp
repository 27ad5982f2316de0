// The published layouts and the search: each is a point of its job's space or is excluded by a rule that says
// why, and among the layouts that one source measured of a job the search picks the one that the record's
// pricing ranks first.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cost_models/estimate.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/legality.h"
#include "planner/space/space.h"
#include "specs/language/catalog.h"
#include "tests/published/fit.h"
#include "tests/published/read_runs.h"

namespace published {
namespace {

const std::filesystem::path data = "tests/published/data";

/// The placement with neutral values where a dimension has no effect, as the space writes it.
specs::RegularPlacement canonical(specs::RegularPlacement placement) {
  if (placement.tensor == 1) placement.sequence_parallel = false;
  if (placement.data * placement.context == 1) placement.zero = {};
  placement.recomputed_modules = 0;
  return placement;
}

/// The run's experiment on the devices it used: less than one node is a smaller node.
specs::Experiment on_its_devices(const PublishedRun& run) {
  specs::Experiment experiment = run.experiment;
  specs::ClusterGroup& group = experiment.cluster.groups.front();
  const std::int64_t devices = run.placement.world_size();
  if (group.nodes == 1 && devices < group.node.devices) group.node.devices = devices;
  return experiment;
}

/// Why the layout is no point of its experiment's space; empty where it is one.
std::string exclusion(const PublishedRun& run) {
  const specs::Experiment experiment = on_its_devices(run);
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(experiment.training.stack);
  if (!stack.ok()) return "its stack has no profile in the catalog";
  if (run.placement.recomputed_modules != 0)
    return "which modules are recomputed is the stack's own choice, not a dimension";
  const specs::RegularPlacement placement = canonical(run.placement);
  if (placement.world_size() != experiment.cluster.devices())
    return fmt::format("{} of {} devices are used, which is no whole number of nodes", placement.world_size(),
                       experiment.cluster.devices());
  const planner::Legality legality(experiment, *stack);
  if (const planner::MaybeRefusal refusal = legality.placement(placement))
    return fmt::format("{}: {}", specs::name_of(refusal->constraint), refusal->equation);
  return {};
}

class Coverage : public ::testing::Test {
 protected:
  Coverage() : set_(read_runs(data / "published_runs.csv")) {}
  RunSet set_;
};

TEST_F(Coverage, EveryPublishedLayoutIsAPointOfTheSpaceOrItsExclusionIsNamed) {
  std::map<std::string, std::size_t> excluded;
  std::size_t members = 0;
  for (const PublishedRun& run : set_.runs) {
    const std::string reason = exclusion(run);
    if (reason.empty())
      ++members;
    else
      ++excluded[run.experiment.training.stack + ": " + reason];
  }
  std::string reasons;
  for (const auto& [reason, count] : excluded) reasons += fmt::format("{} × {}\n", count, reason);
  EXPECT_EQ(
      reasons,
      "3 × megatron-2022: which modules are recomputed is the stack's own choice, not a dimension\n"
      "3 × nemo: schedule: 62 layers % pipeline 2 · virtual stages 8 = 16 = 14: stages that share a rank are "
      "equal\n"
      "46 × nemo: which modules are recomputed is the stack's own choice, not a dimension\n"
      "8 × other: its stack has no profile in the catalog\n"
      "17 × torchtitan: which modules are recomputed is the stack's own choice, not a dimension\n");
  EXPECT_EQ(members, 1365u);
}

/// The job with every dimension restricted to the layout.
specs::Experiment restricted(const PublishedRun& run) {
  specs::Experiment experiment = on_its_devices(run);
  const specs::RegularPlacement layout = canonical(run.placement);
  specs::SearchSpec& search = experiment.search;
  search.tensor = {layout.tensor};
  search.context = {layout.context};
  search.pipeline = {layout.pipeline};
  search.data = {layout.data};
  search.expert = {layout.expert};
  search.expert_tensor = {layout.expert_tensor};
  search.micro_batch = {layout.micro_batch};
  search.schedule = {layout.schedule};
  search.virtual_stages = {layout.virtual_stages};
  search.recomputation = {layout.recomputation};
  search.sequence_parallel = {layout.sequence_parallel};
  search.zero_stage = {layout.zero.stage};
  search.shard_scope = {layout.zero.scope};
  search.offload_optimizer = {layout.offload.optimizer.device};
  search.offload_parameters = {layout.offload.parameters.device};
  search.offload_activations = {layout.offload.activations.device};
  const std::int64_t layers = specs::block_count(experiment.model);
  const std::int64_t stages = layout.pipeline * layout.virtual_stages;
  search.uneven_stages = layers % stages != 0;
  const auto stack = specs::catalog_stack(experiment.training.stack);
  if (layout.recomputation == specs::Recomputation::full &&
      stack->recomputed_layers != specs::RecomputedLayerNumbers::all)
    search.recomputed_layers = {(layers + stages - 1) / stages};
  return experiment;
}

/// How many jobs of each family have three layouts or more, on one type of device or on whichever, and that
/// the search among them picks the one that the record ranks first.
std::map<std::string, std::size_t> searched_jobs(const RunSet& set, bool same_device) {
  RunPricer pricer(set.runs);
  const std::vector<double> predicted = pricer.price_all(cost_models::ConstantTable::built_in());
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < set.runs.size(); ++i)
    if (exclusion(set.runs[i]).empty())
      jobs[set.runs[i].job + (same_device ? set.runs[i].device : std::string())].push_back(i);
  std::map<std::string, std::size_t> searched;
  for (const auto& [job, layouts] : jobs) {
    if (layouts.size() < 3) continue;
    std::optional<std::size_t> first, picked;
    double best = 0;
    for (const std::size_t i : layouts) {
      const specs::Experiment experiment = restricted(set.runs[i]);
      const specs::Result<specs::StackSpec> stack = specs::catalog_stack(experiment.training.stack);
      const cost_models::Estimator estimator(experiment);
      const planner::EstimatorPricer prices(experiment, *stack, estimator);
      const planner::Space space(experiment, *stack);
      const planner::SearchResult found = planner::branch_and_bound(experiment, space, estimator, prices);
      const auto& candidate = found.best ? found.best : found.nearest_infeasible;
      if (!candidate) {
        ADD_FAILURE() << set.runs[i].id;
        continue;
      }
      if (!picked || candidate->price.step_seconds < best) {
        picked = i;
        best = candidate->price.step_seconds;
      }
      if (!first || predicted[i] < predicted[*first]) first = i;
    }
    ++searched[set.runs[layouts.front()].family];
    EXPECT_NEAR(predicted[*picked], predicted[*first], 1e-6 * predicted[*first])
        << set.runs[*picked].id << " was picked, " << set.runs[*first].id << " ranks first";
  }
  return searched;
}

TEST_F(Coverage, TheSearchAmongMeasuredLayoutsPicksWhatTheRecordRanksFirst) {
  const std::map<std::string, std::size_t> expected{{"bloom-tuning", 7},      {"dgxc-nemotron4-15b", 2},
                                                    {"simumax-b200", 2},      {"torchtitan-llama3", 1},
                                                    {"vtrain-multi-node", 2}, {"vtrain-single-node", 68}};
  EXPECT_EQ(searched_jobs(set_, /*same_device=*/true), expected);
}

TEST_F(Coverage, NemoMeasuredOneLayoutOfAJobOnADeviceSoItsLayoutsAreThoseOfSeveralDevices) {
  std::map<std::string, std::set<std::string>> layouts;
  for (const PublishedRun& run : set_.runs)
    if (run.family.starts_with("nemo-")) layouts[run.job + run.device].insert(run.id);
  for (const auto& [job, ids] : layouts) EXPECT_EQ(ids.size(), 1u) << job;

  std::map<std::string, std::size_t> of_nemo = searched_jobs(set_, /*same_device=*/false);
  std::erase_if(of_nemo, [](const auto& family) { return !family.first.starts_with("nemo-"); });
  const std::map<std::string, std::size_t> expected{
      {"nemo-25.09", 1}, {"nemo-25.11", 3},    {"nemo-26.02", 2}, {"nemo-26.02.01", 2},
      {"nemo-26.04", 2}, {"nemo-26.04.01", 2}, {"nemo-26.06", 1}};
  EXPECT_EQ(of_nemo, expected);
}

}  // namespace
}  // namespace published
