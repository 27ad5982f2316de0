#include "planner/simulate/placement_simulation.h"

#include <algorithm>

#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace planner {
namespace {

specs::Schedule lowered_schedule(const specs::Placement& placement, std::int64_t micro_batches) {
  const specs::Schedule compute = specs::generate_schedule(
      placement.schedule, static_cast<std::int32_t>(placement.pipeline_ranks()),
      static_cast<std::int32_t>(placement.virtual_stages), static_cast<std::int32_t>(micro_batches),
      static_cast<std::int32_t>(placement.micro_batch_group));
  specs::LoweringOptions options;
  for (const specs::PipelineStage& stage : placement.stages)
    options.zero_stage = std::max(options.zero_stage, stage.zero.stage);
  // Its gradients stay whole until the last micro-batch.
  if (placement.pipeline_ranks() > 1 && options.zero_stage == 2) options.zero_stage = 1;
  return specs::lower(compute, options);
}

/// The stage whose gradients a rank completes last.
std::size_t last_stage_of(const std::vector<specs::Action>& actions) {
  for (auto action = actions.rbegin(); action != actions.rend(); ++action)
    if (action->kind == specs::ActionKind::backward || action->kind == specs::ActionKind::weight_gradient)
      return static_cast<std::size_t>(action->stage);
  return 0;
}

}  // namespace

ScheduleDurations schedule_durations(const cost_models::PlacementSeconds& seconds,
                                     const specs::Schedule& schedule) {
  ScheduleDurations durations;
  durations.activation_transfer = seconds.transfers;
  durations.gradient_transfer = seconds.transfers;
  for (const cost_models::StageSeconds& stage : seconds.stages)
    durations.stages.push_back({.forward = stage.forward,
                                .input_gradient = stage.input_gradient(),
                                .weight_gradient = stage.weight_gradient});
  for (std::size_t rank = 0; rank < seconds.ends.size(); ++rank)
    durations.stages[last_stage_of(schedule.rank_actions[rank])].reduction =
        seconds.ends[rank].gradient_reduction;
  return durations;
}

StepSimulation simulate_step(const cost_models::Estimator& estimator, const specs::Placement& placement) {
  const cost_models::PlacementSeconds seconds = estimator.seconds_of(placement);
  StepSimulation step;
  step.schedule = lowered_schedule(placement, seconds.micro_batches);
  step.pipeline = simulate(step.schedule, schedule_durations(seconds, step.schedule));
  double slowest_update = 0, delayed = 0;
  for (const cost_models::StepEndSeconds& end : seconds.ends) {
    slowest_update = std::max(slowest_update, end.update());
    delayed = std::max(delayed, end.delayed);
  }
  step.update_seconds = std::max(slowest_update + seconds.fixed, delayed - step.pipeline.seconds);
  for (const cost_models::StepEndSeconds& end : seconds.ends)
    step.waits_for_update_seconds.push_back(slowest_update - end.update());
  return step;
}

}  // namespace planner
