#include "planner/plan/price_placement.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/certificate/certificate.h"
#include "planner/plan/plan_assembly.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/illegality.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"
#include "specs/language/catalog.h"
#include "specs/plan/placement_check.h"

namespace planner {
namespace {

/// What of the host's memory a smaller swap buffer would give back; empty where nothing is swapped.
std::string swap_buffer_remedy(const specs::Experiment& experiment, const specs::CostBreakdown& cost) {
  std::map<std::int64_t, std::int64_t> pinned;
  bool swaps = false;
  for (const specs::MemoryEntry& entry : cost.memory) {
    swaps |= entry.location == specs::MemoryLocation::nvme;
    if (entry.location == specs::MemoryLocation::host_pinned) pinned[entry.pipeline_rank] += entry.bytes;
  }
  std::int64_t most = 0;
  for (const auto& [rank, bytes] : pinned) most = std::max(most, bytes);
  if (!swaps || most == 0) return {};
  const std::int64_t ranks = experiment.cluster.groups.front().node.devices;
  return fmt::format(
      "; of it {} are pinned buffers, {} a rank on {} ranks a node: swap to NVMe through smaller ones, "
      "training.swap_buffer_elements (DeepSpeed: buffer_size and sub_group_size)",
      format_bytes(static_cast<double>(most * ranks)), format_bytes(static_cast<double>(most)), ranks);
}

/// What the placement lacks most, of the ranks that do not fit: device memory first.
std::string memory_shortfall(const cost_models::Estimator& estimator, const specs::Placement& placement) {
  std::string shortfall;
  std::int64_t most = 0;
  const auto look_at = [&](Constraint constraint, std::int64_t needed, std::int64_t usable) {
    if (needed - usable <= most) return;
    most = needed - usable;
    shortfall = memory_equation(constraint, needed, usable);
  };
  const std::vector<cost_models::RankBytes> ranks = estimator.rank_bytes(placement);
  for (const cost_models::RankBytes& rank : ranks)
    look_at(Constraint::device_memory, rank.device, estimator.usable_device_bytes(rank.device_group));
  if (!shortfall.empty()) return shortfall;
  for (const cost_models::RankBytes& rank : ranks)
    look_at(Constraint::host_memory, rank.host_per_node, estimator.usable_host_bytes(rank.device_group));
  return shortfall;
}

specs::Result<PricedPlan> priced_plan(const specs::Experiment& experiment,
                                      const cost_models::Estimator& estimator,
                                      const specs::Placement& placement) {
  PricedPlan priced{assemble_plan(experiment, estimator, placement), estimator.most_usable_device_bytes(),
                    memory_shortfall(estimator, placement)};
  const cost_models::Estimator::Fits fits = estimator.fits(placement);
  if (fits.device && !fits.host)
    priced.memory_shortfall += swap_buffer_remedy(experiment, priced.plan.prediction);
  specs::Diagnostics problems = check_finite(priced.plan);
  if (problems.has_errors()) return {std::nullopt, std::move(problems)};
  return {std::move(priced), {}};
}

}  // namespace

specs::Result<PricedPlan> price_placement(const specs::Experiment& experiment,
                                          const specs::Placement& placement) {
  specs::Result<PricedPlan> result;
  result.diagnostics =
      specs::check_placement(placement, experiment.model, experiment.cluster, experiment.training);
  if (result.diagnostics.has_errors()) return result;
  return priced_plan(experiment, cost_models::Estimator(experiment), placement);
}

specs::Result<PricedPlan> price_best_completion(const specs::Experiment& experiment) {
  specs::Result<PricedPlan> result;
  result.diagnostics = unplannable(experiment);
  const specs::Result<specs::StackSpec> stack = specs::stack_of(experiment.training);
  result.diagnostics.append(stack.diagnostics);
  if (result.diagnostics.has_errors()) return result;
  const Space space(experiment, *stack);
  if (space.meshes().empty()) {
    for (const std::string& reason : why_empty(experiment, *stack).reasons)
      result.diagnostics.error({}, "no such placement is legal: " + reason);
    return result;
  }
  const cost_models::Estimator estimator(experiment);
  const std::unique_ptr<Pricer> owned = make_pricer(experiment, *stack, estimator);
  const Pricer& pricer = *owned;
  const SearchResult found = branch_and_bound(experiment, space, estimator, pricer);
  const PricedCandidate candidate = found.best ? *found.best : *found.nearest_infeasible;
  return priced_plan(experiment, estimator, pricer.placement(candidate.placement));
}

}  // namespace planner
