#include "planner/price_placement.h"

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/branch_and_bound.h"
#include "planner/certificate.h"
#include "planner/illegality.h"
#include "planner/plan_assembly.h"
#include "planner/plan_experiment.h"
#include "planner/pricing.h"
#include "planner/space.h"
#include "specs/language/catalog.h"
#include "specs/plan/placement_check.h"

namespace planner {
namespace {

PricedPlan priced_plan(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                       const specs::Placement& placement) {
  PricedPlan priced{assemble_plan(experiment, estimator, placement), estimator.usable_device_bytes(), {}};
  const EstimatorPricer pricer(experiment, estimator);
  const specs::CostBreakdown& cost = priced.plan.prediction;
  const Price price{0, cost.step_seconds, cost.peak_device_bytes, cost.peak_host_bytes_per_node};
  if (!pricer.fits_device(price))
    priced.memory_shortfall = memory_equation(Constraint::device_memory, price, pricer);
  else if (!pricer.fits_host(price))
    priced.memory_shortfall = memory_equation(Constraint::host_memory, price, pricer);
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
