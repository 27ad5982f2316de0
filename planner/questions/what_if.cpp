#include "planner/questions/what_if.h"

#include <algorithm>
#include <utility>

#include "planner/space/module_treatments.h"

namespace planner {
namespace {

/// The strongest recomputation of any layer.
specs::Recomputation recomputation_of(const specs::Placement& placement) {
  specs::Recomputation strongest = specs::Recomputation::none;
  for (const specs::PipelineStage& stage : placement.stages)
    for (const specs::RecomputationRun& run : stage.recomputation) strongest = std::max(strongest, run.mode);
  return strongest;
}

/// [search] that leaves the placement alone, but for the dimensions that `changed` restricts; the data degree
/// gives way where they change the other degrees or there are other devices (`same_devices` is false), and
/// the cut of the stages where these no longer suit it.
specs::SearchSpec pinned_to(const specs::Placement& placement, const specs::SearchSpec& changed,
                            bool same_devices) {
  const specs::PipelineStage& stage = placement.stages.front();
  specs::SearchSpec pinned = changed;
  const bool same_degrees = same_devices && changed.tensor.empty() && changed.context.empty() &&
                            changed.pipeline.empty() && changed.data.empty();
  const auto pin = [](auto& restriction, auto value) {
    if (restriction.empty()) restriction = {value};
  };
  pin(pinned.tensor, stage.mesh.tensor);
  pin(pinned.context, stage.mesh.context);
  pin(pinned.pipeline, placement.pipeline_ranks());
  if (same_degrees) pin(pinned.data, stage.mesh.data);
  pin(pinned.expert, stage.mesh.expert);
  pin(pinned.expert_tensor, stage.mesh.expert_tensor);
  pin(pinned.micro_batch, placement.micro_batch);
  pin(pinned.schedule, placement.schedule);
  pin(pinned.virtual_stages, placement.virtual_stages);
  pin(pinned.sequence_parallel, placement.sequence_parallel);
  pin(pinned.recomputation, recomputation_of(placement));
  pin(pinned.zero_stage, stage.zero.stage);
  pin(pinned.shard_scope, stage.zero.scope);
  const auto option_of = [](const specs::OffloadTreatment& treatment) {
    return specs::OffloadOption{treatment.device, treatment.eighths};
  };
  pin(pinned.offload_optimizer, option_of(stage.offload.optimizer));
  pin(pinned.offload_parameters, option_of(stage.offload.parameters));
  pin(pinned.offload_activations, option_of(stage.offload.activations));
  for (const ModuleDegree& module : module_degrees)
    pin(pinned.*module.restriction, stage.modules.*module.degree);
  pin(pinned.output_mode, stage.modules.output_mode);
  pin(pinned.micro_batch_group, placement.micro_batch_group);
  if (stage.offload.optimizer.device != specs::OffloadDevice::none)
    pin(pinned.delayed_update, stage.offload.delayed_update);
  return pinned;
}

/// "Recomputed" says of the same placement that all layers are, not as many as the memory asks for.
specs::Placement recomputing_all_layers(specs::Placement placement, const specs::ModelSpec& model) {
  const specs::Recomputation mode = recomputation_of(placement);
  for (specs::PipelineStage& stage : placement.stages)
    stage.recomputation = {
        {.layers = specs::layers_touched(stage.units, specs::block_count(model)), .mode = mode}};
  return placement;
}

/// The base's placement under the change; where the change is of [search], with what it asks for, where it is
/// of the batch, with as many micro-batches as that needs, and where it is of the number of devices, with as
/// many replicas as they hold.
specs::Result<PricedPlan> price_unchanged(const specs::Plan& base, const specs::Experiment& changed) {
  const bool same_devices = changed.cluster.devices() == base.inputs.cluster.devices();
  const bool as_it_is = same_devices && changed.search == base.inputs.search &&
                        changed.training.global_batch == base.inputs.training.global_batch;
  if (as_it_is || base.inputs.cluster.groups.size() > 1) return price_placement(changed, base.placement);
  specs::Experiment question = changed;
  question.search = pinned_to(base.placement, changed.search, same_devices);
  specs::Result<PricedPlan> priced = price_best_completion(question);
  const bool recomputes = changed.search.recomputation != base.inputs.search.recomputation &&
                          changed.search.recomputed_layers.empty();
  if (!priced || !recomputes || recomputation_of(priced->plan.placement) == specs::Recomputation::none)
    return priced;
  return price_placement(changed, recomputing_all_layers(priced->plan.placement, changed.model));
}

}  // namespace

specs::Result<WhatIf> what_if(const specs::Experiment& base, const specs::Experiment& changed) {
  specs::Result<WhatIf> result;
  specs::Result<PlanOutcome> base_outcome = plan_experiment(base);
  specs::Result<PlanOutcome> changed_outcome = plan_experiment(changed);
  result.diagnostics = base_outcome.diagnostics;
  result.diagnostics.append(changed_outcome.diagnostics);
  if (!base_outcome || !changed_outcome) return result;

  WhatIf answer{std::move(*base_outcome), std::nullopt, {}, std::move(*changed_outcome)};
  if (answer.base.plan) {
    specs::Result<PricedPlan> priced = price_unchanged(*answer.base.plan, changed);
    for (const specs::Diagnostic& diagnostic : priced.diagnostics.entries())
      answer.unchanged_refusals.push_back(diagnostic.message);
    answer.unchanged = std::move(priced.value);
  }
  result.value = std::move(answer);
  return result;
}

}  // namespace planner
