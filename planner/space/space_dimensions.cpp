// The space seen dimension by dimension: what occurs, and what a user might miss with the rule that excludes
// it.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/module_treatments.h"
#include "planner/space/space.h"

namespace planner {
namespace {

using specs::all_names;
using specs::from_name;
using specs::name_of;

/// Powers of two that practitioners try first.
constexpr std::array<std::int64_t, 7> customary_degrees{1, 2, 4, 8, 16, 32, 64};

Dimension degrees(std::string name, const std::set<std::int64_t>& found) {
  Dimension dimension{std::move(name), {}, {}};
  for (const std::int64_t value : found) dimension.values.push_back(std::to_string(value));
  return dimension;
}

template <class Rule>
void add_refused_degrees(Dimension& dimension, const std::set<std::int64_t>& found, std::int64_t devices,
                         Rule&& rule) {
  for (const std::int64_t degree : customary_degrees) {
    if (found.contains(degree) || degree > devices) continue;
    if (const MaybeRefusal refusal = rule(degree))
      dimension.excluded.push_back(std::to_string(degree) + ": " + refusal->equation);
  }
}

/// Values of an enumeration: those found, and the refusal of each other one that `rule` gives a reason for.
template <class Enum, class Rule>
Dimension names(std::string name, const std::set<Enum>& found, Rule&& rule) {
  Dimension dimension{std::move(name), {}, {}};
  for (const auto& [value, text] : specs::EnumNames<Enum>::names) {
    if (found.contains(value))
      dimension.values.emplace_back(text);
    else if (const MaybeRefusal refusal = rule(value))
      dimension.excluded.push_back(std::string(text) + ": " + refusal->equation);
  }
  return dimension;
}

struct Occurring {
  std::set<std::int64_t> tensor, context, pipeline, data, expert, expert_tensor, micro_batch, virtual_stages,
      zero_stage, local_steps, micro_batch_group;
  std::array<std::set<std::int64_t>, module_degrees.size()> module_tensor;
  std::set<specs::OutputLayerMode> output_mode;
  std::set<bool> delayed_update;
  std::set<std::string> axis_order;
  std::set<specs::ScheduleKind> schedule;
  std::set<specs::Recomputation> recomputation;
  std::set<specs::ShardScope> shard_scope;
  std::set<bool> sequence_parallel;
  using Shares = std::map<specs::OffloadDevice, std::set<std::int64_t>>;
  Shares offload_optimizer, offload_parameters, offload_activations;

  explicit Occurring(const Space& space) {
    for (const MeshSpace& mesh : space.meshes()) add(space, mesh);
    if (space.meshes().empty()) return;
    for (const specs::Recomputation mode : space.recomputations()) recomputation.insert(mode);
    const OffloadChoices& choices = space.offload();
    add(choices.optimizer, offload_optimizer);
    add(choices.delayed_optimizer, offload_optimizer);
    if (!choices.optimizer.empty()) delayed_update.insert(false);
    if (!choices.delayed_optimizer.empty()) delayed_update.insert(true);
    if (zero_stage.contains(3)) add(choices.parameters, offload_parameters);
    if (zero_stage.empty() || *zero_stage.begin() < 3) offload_parameters[specs::OffloadDevice::none];
  }

 private:
  void add(const Space& space, const MeshSpace& mesh) {
    tensor.insert(mesh.mesh.tensor);
    context.insert(mesh.mesh.context);
    pipeline.insert(mesh.mesh.pipeline);
    data.insert(mesh.mesh.data);
    expert.insert(mesh.mesh.expert);
    expert_tensor.insert(mesh.mesh.expert_tensor);
    axis_order.insert(specs::to_string(mesh.order));
    add(space.activation_offload(mesh.mesh), offload_activations);
    sequence_parallel.insert(mesh.sequence_parallel.begin(), mesh.sequence_parallel.end());
    for (const specs::ModuleTreatments& modules : space.modules(mesh)) {
      output_mode.insert(modules.output_mode);
      const bool token_parallel = modules.output_mode == specs::OutputLayerMode::token_parallel;
      for (std::size_t module = 0; module < module_degrees.size(); ++module)
        if (!token_parallel || module_degrees[module].degree != &specs::ModuleTreatments::output_tensor)
          module_tensor[module].insert(modules.*module_degrees[module].degree);
    }
    for (const BatchChoice& batch : space.batches(mesh)) {
      micro_batch.insert(batch.micro_batch);
      for (const ScheduleChoice& choice : space.schedules(batch)) {
        schedule.insert(choice.kind);
        virtual_stages.insert(choice.virtual_stages);
        if (choice.kind == specs::ScheduleKind::interleaved)
          micro_batch_group.insert(choice.micro_batch_group);
      }
    }
    for (const specs::ZeroTreatment& zero : space.zeros(mesh)) {
      zero_stage.insert(zero.stage);
      if (zero.stage > 0) shard_scope.insert(zero.scope);
      for (const std::int64_t steps : space.local_steps(mesh, zero)) local_steps.insert(steps);
    }
  }
  static void add(const std::vector<specs::OffloadTreatment>& choices, Shares& found) {
    for (const specs::OffloadTreatment& treatment : choices)
      found[treatment.device].insert(treatment.eighths);
  }
};

// With a tensor axis. 0 is the mesh's own degree.
void add_module_dimensions(const Legality& legality, const Occurring& found,
                           std::vector<Dimension>& dimensions) {
  const std::int64_t tensor = found.tensor.empty() ? 1 : *found.tensor.rbegin();
  if (tensor == 1) return;
  const MeshDegrees mesh{.tensor = tensor};
  for (std::size_t module = 0; module < module_degrees.size(); ++module) {
    dimensions.push_back(degrees(std::string(module_degrees[module].key), found.module_tensor[module]));
    specs::ModuleTreatments whole;
    whole.*module_degrees[module].degree = 1;
    if (found.module_tensor[module].contains(1)) continue;
    if (const MaybeRefusal refusal = legality.modules(mesh, whole))
      dimensions.back().excluded.push_back("1: " + refusal->equation);
  }
  dimensions.push_back(names("output_mode", found.output_mode, [&](specs::OutputLayerMode mode) {
    specs::ModuleTreatments treated;
    treated.output_mode = mode;
    if (mode == specs::OutputLayerMode::token_parallel) treated.output_tensor = 1;
    return legality.modules(mesh, treated);
  }));
}

}  // namespace

Dimension Space::stage_cuts(const std::set<std::int64_t>& pipeline,
                            const std::set<std::int64_t>& virtual_stages) const {
  Dimension dimension{"stage_cuts", {"even"}, {}};
  if (pipeline.empty() || *pipeline.rbegin() == 1 || !virtual_stages.contains(1)) return dimension;
  const specs::SearchSpec& search = experiment_.search;
  const auto judge = [&](const char* name, bool wanted, bool had, const char* key) {
    if (!wanted)
      dimension.excluded.push_back(fmt::format("{}: [search] {} = false", name, key));
    else if (!had)
      dimension.excluded.push_back(fmt::format("{}: the stack \"{}\" has none", name, stack_.name));
    else
      dimension.values.emplace_back(name);
    return wanted && had;
  };
  if (judge("at any layer", search.uneven_stages, stack_.uneven_stages, "uneven_stages"))
    judge("inside layers", search.cuts_inside_layers, stack_.cuts_inside_layers, "cuts_inside_layers");
  return dimension;
}

Dimension Space::recomputed_layers(const std::set<specs::Recomputation>& recomputation) const {
  Dimension dimension{"recomputed_layers", {}, {}};
  const specs::RecomputedLayerNumbers rule = stack_.recomputed_layers;
  if (recomputation.empty() || *recomputation.rbegin() == specs::Recomputation::none) return dimension;
  if (rule == specs::RecomputedLayerNumbers::all) {
    dimension.values.emplace_back("all of a stage");
    dimension.excluded.push_back(
        fmt::format("some of a stage: the stack \"{}\" recomputes all", stack_.name));
    return dimension;
  }
  const std::vector<std::int64_t>& named = experiment_.search.recomputed_layers;
  const std::string numbers = named.empty() ? "any number" : fmt::format("{}", fmt::join(named, ", "));
  const bool alike = rule == specs::RecomputedLayerNumbers::alike;
  dimension.values.push_back(
      numbers + (alike ? ", the same for all stages (full recomputation)" : ", each stage its own"));
  if (alike)
    dimension.excluded.push_back(
        fmt::format("each stage its own: the stack \"{}\" has one number for all", stack_.name));
  return dimension;
}

std::vector<Dimension> Space::dimensions() const {
  const Occurring found(*this);
  const std::int64_t devices = experiment_.cluster.devices();
  std::vector<Dimension> dimensions;

  dimensions.push_back(degrees("tensor", found.tensor));
  add_refused_degrees(dimensions.back(), found.tensor, devices,
                      [&](std::int64_t t) { return legality_.tensor(t); });
  dimensions.push_back(degrees("context", found.context));
  add_refused_degrees(dimensions.back(), found.context, std::min<std::int64_t>(devices, 2),
                      [&](std::int64_t c) { return legality_.context(c); });
  dimensions.push_back(degrees("pipeline", found.pipeline));
  add_refused_degrees(dimensions.back(), found.pipeline, devices,
                      [&](std::int64_t p) { return legality_.pipeline(p); });
  dimensions.push_back(degrees("data", found.data));
  if (experiment_.model.mixture) {
    dimensions.push_back(degrees("expert", found.expert));
    dimensions.push_back(degrees("expert_tensor", found.expert_tensor));
  }
  dimensions.push_back(degrees("micro_batch", found.micro_batch));

  // Excluded values are judged on a mesh on which every dimension has an effect.
  const MeshDegrees every_axis{.tensor = 2, .pipeline = 2, .data = 2};
  const std::int64_t many_micro_batches = 2 * every_axis.pipeline * specs::block_count(experiment_.model);
  dimensions.push_back(names("schedule", found.schedule, [&](specs::ScheduleKind kind) {
    const bool one_stage =
        kind == specs::ScheduleKind::one_forward_one_backward || kind == specs::ScheduleKind::gpipe ||
        kind == specs::ScheduleKind::zero_bubble_h1 || kind == specs::ScheduleKind::zero_bubble_h2;
    return legality_.schedule(every_axis, many_micro_batches, kind, one_stage ? 1 : 2);
  }));
  dimensions.push_back(degrees("virtual_stages", found.virtual_stages));
  if (found.micro_batch_group.size() > 1 || found.micro_batch_group.count(0) == 0)
    dimensions.push_back(degrees("micro_batch_group", found.micro_batch_group));

  Dimension sequence_parallel{"sequence_parallel", {}, {}};
  for (const bool on : {false, true}) {
    const std::string name = on ? "true" : "false";
    if (found.sequence_parallel.contains(on))
      sequence_parallel.values.push_back(name);
    else if (const MaybeRefusal refusal = legality_.sequence_parallel(every_axis, on))
      sequence_parallel.excluded.push_back(name + ": " + refusal->equation);
  }
  dimensions.push_back(std::move(sequence_parallel));
  add_module_dimensions(legality_, found, dimensions);
  dimensions.push_back(names("recomputation", found.recomputation,
                             [&](specs::Recomputation mode) { return legality_.recomputation(mode); }));

  dimensions.push_back(stage_cuts(found.pipeline, found.virtual_stages));
  dimensions.push_back(recomputed_layers(found.recomputation));

  dimensions.push_back(degrees("zero_stage", found.zero_stage));
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    if (found.zero_stage.contains(stage)) continue;
    if (const MaybeRefusal refusal = legality_.zero(every_axis, {stage, specs::ShardScope::world}))
      dimensions.back().excluded.push_back(std::to_string(stage) + ": " + refusal->equation);
  }
  dimensions.push_back(
      names("shard_scope", found.shard_scope, [&](specs::ShardScope) { return MaybeRefusal(); }));

  const auto offload = [&](std::string name, const Occurring::Shares& occurring,
                           specs::OffloadTreatment specs::StageOffload::*part) {
    Dimension dimension{std::move(name), {}, {}};
    for (const specs::OffloadDevice device :
         {specs::OffloadDevice::none, specs::OffloadDevice::cpu, specs::OffloadDevice::nvme}) {
      specs::StageOffload treatment;
      treatment.*part = {device, 8};
      if (const auto shares = occurring.find(device); shares != occurring.end()) {
        const bool any = device == specs::OffloadDevice::none || shares->second.size() == 8;
        for (const std::int64_t eighths : any ? std::set<std::int64_t>{0} : shares->second)
          dimension.values.push_back(to_string(specs::OffloadOption{device, eighths}));
      } else if (const auto refusal =
                     legality_.offload(every_axis, treatment, {3, specs::ShardScope::world})) {
        dimension.excluded.push_back(std::string(name_of(device)) + ": " + refusal->equation);
      }
    }
    dimensions.push_back(std::move(dimension));
  };
  offload("offload_optimizer", found.offload_optimizer, &specs::StageOffload::optimizer);
  offload("offload_parameters", found.offload_parameters, &specs::StageOffload::parameters);
  offload("offload_activations", found.offload_activations, &specs::StageOffload::activations);
  if (found.delayed_update.contains(true)) {
    Dimension delayed{"delayed_update", {}, {}};
    for (const bool on : found.delayed_update) delayed.values.emplace_back(on ? "true" : "false");
    dimensions.push_back(std::move(delayed));
  }
  dimensions.push_back({"axis_order", {found.axis_order.begin(), found.axis_order.end()}, {}});
  dimensions.push_back(degrees("local_steps", found.local_steps));
  return dimensions;
}

std::vector<Dimension> Space::refused_restrictions() const {
  std::vector<Dimension> dimensions;
  const auto judge = [&](std::string name, const std::vector<std::int64_t>& restriction, auto rule) {
    Dimension dimension{std::move(name), {}, {}};
    for (const std::int64_t value : restriction) {
      if (const MaybeRefusal refusal = rule(value))
        dimension.excluded.push_back(std::to_string(value) + ": " + refusal->equation);
      else
        dimension.values.push_back(std::to_string(value));
    }
    dimensions.push_back(std::move(dimension));
  };
  const specs::SearchSpec& search = experiment_.search;
  judge("tensor", search.tensor, [&](std::int64_t value) { return legality_.tensor(value); });
  judge("context", search.context, [&](std::int64_t value) { return legality_.context(value); });
  judge("pipeline", search.pipeline, [&](std::int64_t value) { return legality_.pipeline(value); });
  judge("data", search.data, [&](std::int64_t value) { return legality_.data(value); });
  return dimensions;
}

}  // namespace planner
