#include "planner/what_if.h"

#include <utility>

namespace planner {
namespace {

/// [search] that leaves the placement alone, but for the dimensions that `changed` restricts; the data degree
/// gives way where they change the other degrees.
specs::SearchSpec pinned_to(const specs::RegularPlacement& placement, const specs::SearchSpec& changed) {
  specs::SearchSpec pinned = changed;
  const bool same_degrees =
      changed.tensor.empty() && changed.context.empty() && changed.pipeline.empty() && changed.data.empty();
  const auto pin = [](auto& restriction, auto value) {
    if (restriction.empty()) restriction = {value};
  };
  pin(pinned.tensor, placement.tensor);
  pin(pinned.context, placement.context);
  pin(pinned.pipeline, placement.pipeline);
  if (same_degrees) pin(pinned.data, placement.data);
  pin(pinned.expert, placement.expert);
  pin(pinned.expert_tensor, placement.expert_tensor);
  pin(pinned.micro_batch, placement.micro_batch);
  pin(pinned.schedule, placement.schedule);
  pin(pinned.virtual_stages, placement.virtual_stages);
  pin(pinned.sequence_parallel, placement.sequence_parallel);
  pin(pinned.recomputation, placement.recomputation);
  pin(pinned.zero_stage, placement.zero.stage);
  pin(pinned.shard_scope, placement.zero.scope);
  pin(pinned.offload_optimizer, placement.offload.optimizer.device);
  pin(pinned.offload_parameters, placement.offload.parameters.device);
  pin(pinned.offload_activations, placement.offload.activations.device);
  return pinned;
}

/// The base's placement under the change; where the change is of [search], with what it asks for, and where
/// it is of the batch, with as many micro-batches as that needs.
specs::Result<PricedPlan> price_unchanged(const specs::Plan& base, const specs::Experiment& changed) {
  const auto regular = specs::as_regular(base.placement, specs::block_count(base.inputs.model));
  const bool as_it_is = changed.search == base.inputs.search &&
                        changed.training.global_batch == base.inputs.training.global_batch;
  if (as_it_is || !regular) return price_placement(changed, base.placement);
  specs::Experiment question = changed;
  question.search = pinned_to(*regular, changed.search);
  return price_best_completion(question);
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
