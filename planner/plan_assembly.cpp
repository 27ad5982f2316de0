#include "planner/plan_assembly.h"

#include "planner/advice.h"
#include "planner/communication_environment.h"
#include "planner/pricing.h"
#include "specs/plan/rank_mapping.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/text.h"

namespace planner {
namespace {

specs::PlanSchedule schedule_text(const specs::Placement& placement) {
  const specs::Schedule schedule = specs::generate_schedule(
      placement.schedule, static_cast<std::int32_t>(placement.pipeline_ranks()),
      static_cast<std::int32_t>(placement.virtual_stages), static_cast<std::int32_t>(placement.accumulation),
      static_cast<std::int32_t>(placement.micro_batch_group));
  return {std::string(specs::name_of(placement.schedule)),
          specs::generator_version(placement.schedule),
          schedule.layout,
          {{placement.accumulation, specs::to_text(schedule)}}};
}

std::int64_t nodes_in_use(const specs::Experiment& experiment, const specs::Placement& placement) {
  const std::int64_t per_node = experiment.cluster.groups.front().node.devices;
  return (placement.world_size() + per_node - 1) / per_node;
}

}  // namespace

specs::Plan assemble_plan(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                          const specs::Placement& placement) {
  specs::Plan plan;
  plan.generator = "dsplan";
  plan.inputs = experiment;
  plan.world_size = placement.world_size();
  plan.idle_devices = experiment.cluster.devices() - plan.world_size;
  plan.placement = placement;
  plan.schedule = schedule_text(placement);
  plan.environment = communication_environment(experiment.cluster, nodes_in_use(experiment, placement));
  plan.ranks = specs::consecutive_mapping(placement, experiment.cluster);
  plan.prediction = estimator.estimate(placement);
  plan.objective = objective_of(experiment.search.objective, plan.prediction);
  plan.advice = advice_on(experiment, placement);
  return plan;
}

}  // namespace planner
