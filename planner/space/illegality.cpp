#include "planner/space/illegality.h"

#include <fmt/format.h>

#include "planner/space/module_treatments.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

template <class Value>
void take_first(const std::vector<Value>& restriction, Value& value) {
  if (!restriction.empty()) value = restriction.front();
}

/// The first value of each restriction, neutral values elsewhere, the data degree from what remains.
specs::RegularPlacement candidate_of(const specs::Experiment& experiment) {
  const specs::SearchSpec& search = experiment.search;
  specs::RegularPlacement candidate;
  take_first(search.tensor, candidate.tensor);
  take_first(search.context, candidate.context);
  take_first(search.pipeline, candidate.pipeline);
  take_first(search.expert, candidate.expert);
  take_first(search.expert_tensor, candidate.expert_tensor);
  take_first(search.micro_batch, candidate.micro_batch);
  take_first(search.virtual_stages, candidate.virtual_stages);
  if (candidate.virtual_stages > 1) candidate.schedule = specs::ScheduleKind::interleaved;
  take_first(search.schedule, candidate.schedule);
  if (candidate.schedule == specs::ScheduleKind::interleaved && search.virtual_stages.empty())
    candidate.virtual_stages = 2;
  if (candidate.schedule == specs::ScheduleKind::interleaved) {
    take_first(search.micro_batch_group, candidate.micro_batch_group);
    if (candidate.micro_batch_group == candidate.pipeline) candidate.micro_batch_group = 0;
  }
  if (candidate.tensor > 1) {
    for (const ModuleDegree& module : module_degrees) {
      take_first(search.*module.restriction, candidate.modules.*module.degree);
      if (candidate.modules.*module.degree == candidate.tensor) candidate.modules.*module.degree = 0;
    }
    take_first(search.output_mode, candidate.modules.output_mode);
    if (candidate.modules.output_mode == specs::OutputLayerMode::token_parallel)
      candidate.modules.output_tensor = 1;
  }
  take_first(search.recomputation, candidate.recomputation);
  take_first(search.zero_stage, candidate.zero.stage);
  if (!search.sequence_parallel.empty()) candidate.sequence_parallel = search.sequence_parallel.front();
  take_first(search.offload_optimizer, candidate.offload.optimizer.device);
  take_first(search.offload_parameters, candidate.offload.parameters.device);
  take_first(search.offload_activations, candidate.offload.activations.device);
  const std::int64_t others = candidate.tensor * candidate.context * candidate.pipeline;
  if (others >= 1) candidate.data = std::max<std::int64_t>(1, experiment.cluster.devices() / others);
  take_first(search.data, candidate.data);
  const std::int64_t sequences = candidate.micro_batch * candidate.data;
  if (sequences >= 1)
    candidate.accumulation = std::max<std::int64_t>(1, experiment.training.global_batch / sequences);
  return candidate;
}

std::string with_constraint(const Refusal& refusal) {
  return fmt::format("{} ({})", refusal.equation, specs::name_of(refusal.constraint));
}

}  // namespace

std::vector<std::string> reasons_for_empty_space(const specs::Experiment& experiment,
                                                 const specs::StackSpec& stack, const Space& space) {
  std::vector<std::string> reasons;
  for (const Dimension& dimension : space.refused_restrictions())
    for (const std::string& excluded : dimension.excluded)
      reasons.push_back(dimension.name + " = " + excluded);
  if (!reasons.empty()) return reasons;

  const specs::RegularPlacement candidate = candidate_of(experiment);
  if (const MaybeRefusal refusal = Legality(experiment, stack).placement(candidate))
    return {with_constraint(*refusal)};
  return {fmt::format(
      "tensor {} · context {} · pipeline {} · data {} = {} of {} devices: no other number of devices "
      "in use is legal either",
      candidate.tensor, candidate.context, candidate.pipeline, candidate.data,
      format_count(candidate.world_size()), format_count(experiment.cluster.devices()))};
}

}  // namespace planner
