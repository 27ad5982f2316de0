#include "planner/plan/plan_assembly.h"

#include "planner/plan/advice.h"
#include "planner/plan/communication_environment.h"
#include "planner/plan/versions.h"
#include "planner/pricing/pricing.h"
#include "specs/plan/plan_check.h"
#include "specs/plan/plan_json.h"
#include "specs/plan/rank_mapping.h"

namespace planner {
namespace {

std::int64_t nodes_in_use(const specs::Experiment& experiment, const specs::Placement& placement) {
  const std::int64_t per_node = experiment.cluster.groups.front().node.devices;
  return (placement.world_size() + per_node - 1) / per_node;
}

}  // namespace

specs::Plan assemble_plan(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                          const specs::Placement& placement) {
  specs::Plan plan;
  plan.generator = program_version();
  plan.cost_model_version = cost_model_version();
  plan.inputs = experiment;
  plan.inputs_hash = specs::inputs_hash(experiment);
  plan.world_size = placement.world_size();
  plan.idle_devices = experiment.cluster.devices() - plan.world_size;
  plan.placement = placement;
  plan.schedule = specs::plan_schedule(placement);
  plan.environment = communication_environment(experiment.cluster, nodes_in_use(experiment, placement));
  plan.ranks = specs::consecutive_mapping(placement, experiment.cluster);
  plan.prediction = estimator.estimate(placement);
  plan.objective = objective_of(experiment.search.objective, plan.prediction);
  plan.advice = advice_on(experiment, placement, plan.prediction);
  return plan;
}

specs::Diagnostics check_finite(const specs::Plan& plan) {
  specs::Diagnostics diagnostics;
  if (const std::string key = specs::non_finite_key(plan); !key.empty())
    diagnostics.error({}, "no finite number comes out for " + key.substr(1),
                      "a rate, a size or a time of [cluster] is too small or too large to compute with");
  return diagnostics;
}

}  // namespace planner
