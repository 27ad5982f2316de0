#include "planner/price_placement.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/branch_and_bound.h"
#include "planner/certificate.h"
#include "planner/illegality.h"
#include "planner/plan_assembly.h"
#include "planner/plan_experiment.h"
#include "planner/pricing.h"
#include "planner/report/quantity.h"
#include "planner/space.h"
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

PricedPlan priced_plan(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                       const specs::Placement& placement) {
  PricedPlan priced{assemble_plan(experiment, estimator, placement), estimator.usable_device_bytes(), {}};
  const EstimatorPricer pricer(experiment, estimator);
  const specs::CostBreakdown& cost = priced.plan.prediction;
  const Price price{0, cost.step_seconds, cost.peak_device_bytes, cost.peak_host_bytes_per_node};
  if (!pricer.fits_device(price))
    priced.memory_shortfall = memory_equation(Constraint::device_memory, price, pricer);
  else if (!pricer.fits_host(price))
    priced.memory_shortfall =
        memory_equation(Constraint::host_memory, price, pricer) + swap_buffer_remedy(experiment, cost);
  return priced;
}

}  // namespace

specs::Result<PricedPlan> price_placement(const specs::Experiment& experiment,
                                          const specs::Placement& placement) {
  specs::Result<PricedPlan> result;
  result.diagnostics =
      specs::check_placement(placement, experiment.model, experiment.cluster, experiment.training);
  if (!result.diagnostics.has_errors())
    result.value = priced_plan(experiment, cost_models::Estimator(experiment), placement);
  return result;
}

specs::Result<PricedPlan> price_best_completion(const specs::Experiment& experiment) {
  specs::Result<PricedPlan> result;
  result.diagnostics = unplannable(experiment);
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(experiment.training.stack);
  result.diagnostics.append(stack.diagnostics);
  if (result.diagnostics.has_errors()) return result;
  const Space space(experiment, *stack);
  if (space.meshes().empty()) {
    for (const std::string& reason : reasons_for_empty_space(experiment, *stack, space))
      result.diagnostics.error({}, "no such placement is legal: " + reason);
    return result;
  }
  const cost_models::Estimator estimator(experiment);
  const EstimatorPricer pricer(experiment, estimator);
  const SearchResult found = branch_and_bound(experiment, space, estimator, pricer);
  const PricedCandidate candidate = found.best ? *found.best : *found.nearest_infeasible;
  result.value = priced_plan(experiment, estimator, pricer.placement(candidate.placement));
  return result;
}

}  // namespace planner
