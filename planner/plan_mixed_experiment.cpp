#include "planner/plan_mixed_experiment.h"

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/illegality.h"
#include "planner/mixed_cluster.h"
#include "planner/plan_assembly.h"
#include "planner/space.h"

namespace planner {

PlanOutcome plan_mixed_experiment(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                  const std::atomic<bool>* stop) {
  PlanOutcome outcome;
  const cost_models::Estimator estimator(experiment);
  const Space space(experiment, stack);
  MixedResult result = plan_mixed_cluster(experiment, stack, space, estimator, stop);
  if (!result.best && !result.certificate.complete) return outcome;
  if (!result.best) {
    Infeasibility& infeasibility = outcome.infeasibility.emplace();
    if (space.meshes().empty())
      infeasibility.reasons = reasons_for_empty_space(experiment, stack, space);
    else if (result.certificate.space_candidates == "0")
      infeasibility.reasons.push_back(
          "no mesh puts each pipeline rank, or each replica, on nodes of one kind: tensor · context · data, "
          "or "
          "tensor · context · pipeline, must divide the devices of each group");
    else
      infeasibility.reasons.push_back("device memory: no cut of the stages fits each kind of node");
    return outcome;
  }
  specs::Plan plan = assemble_plan(experiment, estimator, *result.best);
  plan.certificate = std::move(result.certificate);
  outcome.plan = std::move(plan);
  return outcome;
}

}  // namespace planner
