#include "planner/space/illegality.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/module_treatments.h"
#include "planner/space/restrictions.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

using Restrictions = std::vector<const Restriction*>;

/// Beyond so many keys at once the smallest set is not looked for: keys are put back one by one.
constexpr std::size_t most_tried_together = 3;
/// Meshes of a space in which a value is tried.
constexpr std::size_t most_tried_meshes = 256;

template <class Value>
void take_first(const std::vector<Value>& restriction, Value& value) {
  if (!restriction.empty()) value = restriction.front();
}

void take_first(const std::vector<specs::OffloadOption>& restriction, specs::OffloadTreatment& treatment) {
  if (restriction.empty()) return;
  const auto [device, eighths] = restriction.front();
  const std::int64_t all = device == specs::OffloadDevice::none ? 0 : 8;
  treatment = {device, eighths > 0 ? eighths : all};
}

/// `candidate` with the first value of each restriction, the data degree from what remains.
specs::RegularPlacement with_first_values(specs::RegularPlacement candidate, const specs::SearchSpec& search,
                                          const specs::Experiment& experiment) {
  take_first(search.tensor, candidate.tensor);
  take_first(search.context, candidate.context);
  take_first(search.pipeline, candidate.pipeline);
  take_first(search.expert, candidate.expert);
  take_first(search.expert_tensor, candidate.expert_tensor);
  take_first(search.micro_batch, candidate.micro_batch);
  take_first(search.virtual_stages, candidate.virtual_stages);
  if (!search.virtual_stages.empty() && candidate.virtual_stages > 1)
    candidate.schedule = specs::ScheduleKind::interleaved;
  take_first(search.schedule, candidate.schedule);
  if (candidate.schedule == specs::ScheduleKind::interleaved && search.virtual_stages.empty())
    candidate.virtual_stages = std::max<std::int64_t>(2, candidate.virtual_stages);
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
  take_first(search.shard_scope, candidate.zero.scope);
  if (!search.sequence_parallel.empty()) candidate.sequence_parallel = search.sequence_parallel.front();
  take_first(search.offload_optimizer, candidate.offload.optimizer);
  take_first(search.offload_parameters, candidate.offload.parameters);
  take_first(search.offload_activations, candidate.offload.activations);
  if (!search.delayed_update.empty()) candidate.offload.delayed_update = search.delayed_update.front();
  if (search.local_steps != specs::SearchSpec{}.local_steps)
    take_first(search.local_steps, candidate.local_steps);
  const std::int64_t others = candidate.tensor * candidate.context * candidate.pipeline;
  if (others >= 1) candidate.data = std::max<std::int64_t>(1, experiment.cluster.devices() / others);
  take_first(search.data, candidate.data);
  const std::int64_t sequences = candidate.micro_batch * candidate.data;
  if (sequences >= 1)
    candidate.accumulation = std::max<std::int64_t>(1, experiment.training.global_batch / sequences);
  return candidate;
}

/// What has no value in a candidate without a pipeline and gets one with it.
bool binds_with_a_pipeline(const Restriction& restriction) {
  return restriction.key == "schedule" || restriction.key == "virtual_stages" ||
         restriction.key == "micro_batch_group";
}

/// The first candidate of a mesh.
specs::RegularPlacement first_candidate(const Space& space, const MeshSpace& mesh) {
  specs::RegularPlacement candidate = mesh.corner();
  const BatchChoice& batch = space.batches(mesh).front();
  const ScheduleChoice& schedule = space.schedules(batch).front();
  candidate.micro_batch = batch.micro_batch;
  candidate.accumulation = batch.accumulation;
  candidate.schedule = schedule.kind;
  candidate.virtual_stages = schedule.virtual_stages;
  candidate.micro_batch_group = schedule.micro_batch_group;
  candidate.sequence_parallel = mesh.sequence_parallel.front();
  candidate.modules = space.modules(mesh).front();
  candidate.recomputation = space.recomputations().front();
  const auto has_points = [&](const specs::ZeroTreatment& zero) {
    return !space.parameter_offload(zero).empty() && !space.local_steps(mesh, zero).empty();
  };
  candidate.zero = *std::find_if(space.zeros(mesh).begin(), space.zeros(mesh).end(), has_points);
  const bool delayed = space.optimizer_offload(false).empty();
  candidate.offload = {space.optimizer_offload(delayed).front(),
                       space.parameter_offload(candidate.zero).front(),
                       space.activation_offload(mesh.mesh).front(), delayed};
  candidate.local_steps = space.local_steps(mesh, candidate.zero).front();
  return candidate;
}

std::string with_constraint(const Refusal& refusal) {
  return fmt::format("{} ({})", refusal.equation, specs::name_of(refusal.constraint));
}

class EmptySpaceReasons {
 public:
  EmptySpaceReasons(const specs::Experiment& experiment, const specs::StackSpec& stack)
      : experiment_(experiment),
        stack_(stack),
        set_(restrictions_of(experiment.search)),
        refused_by_themselves_(Space(experiment, stack).refused_restrictions()) {}

  EmptySpace answer() const {
    EmptySpace answer;
    if (!possible_without(set_)) {
      answer.reasons.push_back(joint_reason());
      return answer;
    }
    std::vector<Restrictions> smallest;
    for (std::size_t size = 1; size <= most_tried_together && smallest.empty(); ++size)
      collect({}, 0, size, smallest);
    if (smallest.empty()) smallest.push_back(needed_of_all());
    for (const Restrictions& keys : smallest) {
      std::vector<std::string> names;
      for (const Restriction* key : keys) names.emplace_back(key->key);
      answer.restricting.push_back(std::move(names));
      answer.reasons.push_back(reason_of(keys));
    }
    return answer;
  }

 private:
  specs::Experiment without(const Restrictions& keys) const {
    specs::Experiment lifted = experiment_;
    for (const Restriction* key : keys) key->lift(lifted.search);
    return lifted;
  }

  bool possible_without(const Restrictions& keys) const {
    const specs::Experiment lifted = without(keys);
    return !Space(lifted, stack_).meshes().empty();
  }

  /// Every set of `size` keys, `chosen` and later ones from `next` on, without which something is legal.
  void collect(const Restrictions& chosen, std::size_t next, std::size_t size,
               std::vector<Restrictions>& found) const {
    if (chosen.size() == size) {
      if (possible_without(chosen)) found.push_back(chosen);
      return;
    }
    for (std::size_t index = next; index < set_.size(); ++index) {
      Restrictions longer = chosen;
      longer.push_back(set_[index]);
      collect(longer, index + 1, size, found);
    }
  }

  /// A set of which no key can be put back, though another may be smaller.
  Restrictions needed_of_all() const {
    Restrictions needed = set_;
    for (const Restriction* key : set_) {
      Restrictions fewer = needed;
      std::erase(fewer, key);
      if (possible_without(fewer)) needed = std::move(fewer);
    }
    return needed;
  }

  std::string reason_of(const Restrictions& keys) const {
    std::vector<std::string> words, equations;
    const specs::Experiment lifted = without(keys);
    const Space space(lifted, stack_);
    for (const Restriction* key : keys) {
      words.push_back(words_of(*key, experiment_.search));
      for (std::size_t index = 0; index < key->count(experiment_.search); ++index)
        if (std::string equation = equation_of(*key, index, space); !equation.empty())
          if (std::find(equations.begin(), equations.end(), equation) == equations.end())
            equations.push_back(std::move(equation));
    }
    if (equations.empty()) equations.push_back(joint_reason());
    return fmt::format("{} leave{} no placement: {}", fmt::join(words, " and "), words.size() == 1 ? "s" : "",
                       fmt::join(equations, "; "));
  }

  /// What a degree breaks whatever the rest: the one value that `alone` has of the key.
  std::string refusal_by_itself(const Restriction& key, const specs::SearchSpec& alone) const {
    for (const Dimension& dimension : refused_by_themselves_)
      for (const std::string& refused : dimension.excluded) {
        const std::size_t colon = refused.find(": ");
        if (dimension.name == key.key &&
            words_of(key, alone).ends_with(fmt::format("= [{}]", refused.substr(0, colon))))
          return refused.substr(colon + 2);
      }
    return {};
  }

  /// What a candidate of the space breaks with that value of the key in place of its own; empty where none
  /// that is tried breaks a rule.
  std::string equation_of(const Restriction& key, std::size_t index, const Space& space) const {
    specs::SearchSpec alone = experiment_.search;
    for (const Restriction& other : all_restrictions())
      if (other.key != key.key && !(key.key == "pipeline" && binds_with_a_pipeline(other))) other.lift(alone);
    key.keep(alone, index);
    if (std::string equation = refusal_by_itself(key, alone); !equation.empty()) return equation;
    std::string restricted;
    const std::size_t tried = std::min(space.meshes().size(), most_tried_meshes);
    for (std::size_t mesh = 0; mesh < tried; ++mesh) {
      const auto candidate =
          with_first_values(first_candidate(space, space.meshes()[mesh]), alone, experiment_);
      const MaybeRefusal refusal = space.legality().placement(candidate);
      if (!refusal) continue;
      if (refusal->constraint != Constraint::search_restriction) return with_constraint(*refusal);
      if (restricted.empty()) restricted = with_constraint(*refusal);
    }
    return restricted;
  }

  /// What the first value of each restriction breaks, neutral values elsewhere.
  std::string joint_reason() const {
    const auto candidate = with_first_values({}, experiment_.search, experiment_);
    if (const MaybeRefusal refusal = Legality(experiment_, stack_).placement(candidate))
      return with_constraint(*refusal);
    return fmt::format(
        "tensor {} · context {} · pipeline {} · data {} = {} of {} devices, and no other number of "
        "devices in use is legal",
        candidate.tensor, candidate.context, candidate.pipeline, candidate.data,
        format_count(candidate.world_size()), format_count(experiment_.cluster.devices()));
  }

  const specs::Experiment& experiment_;
  const specs::StackSpec& stack_;
  Restrictions set_;
  std::vector<Dimension> refused_by_themselves_;
};

}  // namespace

EmptySpace why_empty(const specs::Experiment& experiment, const specs::StackSpec& stack) {
  return EmptySpaceReasons(experiment, stack).answer();
}

}  // namespace planner
