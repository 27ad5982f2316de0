#include "planner/space/written_out_space.h"

#include <algorithm>
#include <array>
#include <map>

#include "cost_models/parameters.h"
#include "specs/plan/placement_check.h"
#include "specs/schedule/generate.h"

namespace planner {
namespace {

using specs::OffloadDevice;
using specs::OffloadTreatment;
using specs::Recomputation;
using specs::RegularPlacement;
using specs::ScheduleKind;
using specs::ShardScope;
using specs::ZeroTreatment;

template <class Value>
bool among(const std::vector<Value>& list, const Value& value) {
  return std::count(list.begin(), list.end(), value) > 0;
}
template <class Value>
bool wanted(const std::vector<Value>& restriction, const Value& value) {
  return restriction.empty() || among(restriction, value);
}

std::int64_t size_of(const RegularPlacement& mesh, std::string_view axis) {
  return axis == "tp" ? mesh.tensor : axis == "cp" ? mesh.context : axis == "dp" ? mesh.data : mesh.pipeline;
}

/// "tp-dp" for "tp-cp-dp-pp" of a mesh with neither context nor pipeline ranks.
std::string without_small_axes(const RegularPlacement& mesh, const std::string& order) {
  std::string left;
  for (std::size_t at = 0; at < order.size(); at += 3) {
    const std::string_view axis = std::string_view(order).substr(at, 2);
    if (size_of(mesh, axis) > 1) left += std::string(axis) + "-";
  }
  return left;
}

}  // namespace

WrittenOutSpace::WrittenOutSpace(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment),
      search_(experiment.search),
      stack_(stack),
      layers_(specs::block_count(experiment.model)) {
  const std::int64_t devices = experiment.cluster.devices();
  const std::int64_t per_node = experiment.cluster.groups.front().node.devices;
  for (std::int64_t idle = 0; idle <= search_.idle_nodes && idle * per_node < devices; ++idle)
    add_world(devices - idle * per_node);
  if (experiment.cluster.groups.size() > 1) return;  // used whole
  for (std::int64_t world = devices - 1; meshes_.empty() && world > 0; --world) add_world(world);
}

void WrittenOutSpace::add_world(std::int64_t world) {
  const std::int64_t sequence = experiment_.training.sequence_length;
  for (std::int64_t tensor = 1; tensor <= std::min(world, experiment_.model.attention.heads); ++tensor) {
    if (world % tensor != 0) continue;
    for (std::int64_t pipeline = 1; tensor * pipeline <= world && pipeline <= layers_; ++pipeline) {
      if (world % (tensor * pipeline) != 0) continue;
      for (std::int64_t context = 1; tensor * pipeline * context <= world && context <= sequence; ++context)
        if (world % (tensor * pipeline * context) == 0)
          add_meshes(tensor, context, pipeline, world / (tensor * pipeline * context));
    }
  }
}

void WrittenOutSpace::add_meshes(std::int64_t tensor, std::int64_t context, std::int64_t pipeline,
                                 std::int64_t data) {
  if (!wanted(search_.tensor, tensor) || !wanted(search_.context, context) ||
      !wanted(search_.pipeline, pipeline) || !wanted(search_.data, data) ||
      experiment_.training.global_batch % data != 0)
    return;
  if ((tensor > 1 && !stack_.tensor_parallel) || (context > 1 && !stack_.context_parallel) ||
      (pipeline > 1 && stack_.schedules.empty()))
    return;
  const std::int64_t experts = experiment_.model.mixture ? experiment_.model.mixture->experts : 1;
  for (std::int64_t expert = 1; expert <= experts; ++expert)
    for (std::int64_t expert_tensor = 1; expert_tensor <= (experts > 1 ? tensor : 1); ++expert_tensor) {
      WrittenOutMesh mesh;
      mesh.corner.tensor = tensor;
      mesh.corner.context = context;
      mesh.corner.pipeline = pipeline;
      mesh.corner.data = data;
      mesh.corner.expert = expert;
      mesh.corner.expert_tensor = expert_tensor;
      mesh.corner.buckets = buckets(mesh.corner);
      if ((experts > 1 && !experts_allowed(mesh.corner)) || !shape_allowed(mesh.corner) ||
          !groups_allowed(mesh.corner))
        continue;
      const std::int64_t share = experiment_.training.global_batch / data;
      for (std::int64_t size = 1; size <= share; ++size)
        if (share % size == 0 && wanted(search_.micro_batch, size) &&
            !schedules(pipeline, share / size).empty())
          mesh.micro_batches.push_back(size);
      add_orders(std::move(mesh));
    }
}

specs::BucketSizes WrittenOutSpace::buckets(const RegularPlacement& mesh) const {
  specs::BucketSizes sizes;
  const std::int64_t replicas = mesh.data * mesh.context;
  if (replicas == 1) return sizes;
  const specs::TrainingSpec& training = experiment_.training;
  const std::int64_t element = specs::storage_bytes(training.precision);
  const std::int64_t gradient = element == 2 ? specs::storage_bytes(training.reduction_precision) : element;
  const auto bytes = [&](const specs::StackBucket& rule, std::int64_t named, std::int64_t each) {
    if (named > 0) return named * each;
    if (rule.bytes > 0) return rule.bytes;
    if (!rule.layer) return std::max(rule.elements * each, replicas * rule.elements_per_replica * each);
    const specs::ModelSpec& model = experiment_.model;
    const cost_models::ShardDegrees degrees{.attention_tensor = mesh.tensor,
                                            .feed_forward_tensor = mesh.tensor};
    const std::int64_t end = specs::attention_unit(model.encoder_layers + model.layers);
    const specs::UnitRange with{1, end}, without{1, end - 2};
    return each * (cost_models::parameters_of_units(model, with, degrees).dense -
                   cost_models::parameters_of_units(model, without, degrees).dense);
  };
  sizes.gradient_bucket_bytes = bytes(stack_.gradient_bucket, training.gradient_bucket_elements, gradient);
  sizes.gather_bucket_bytes = bytes(stack_.gather_bucket, training.gather_bucket_elements, element);
  return sizes;
}

void WrittenOutSpace::add_orders(WrittenOutMesh mesh) {
  if (mesh.micro_batches.empty() || sequence_parallel(mesh.corner).empty() || recomputations().empty() ||
      modules(mesh.corner).empty())
    return;
  bool treated = false;
  for (const ZeroTreatment& zero : zeros(mesh.corner))
    treated |= updates(zero) && !offload(OffloadedPart::parameters, mesh.corner, zero).empty() &&
               !offload(OffloadedPart::activations, mesh.corner, zero).empty() &&
               !local_steps(mesh.corner, zero).empty();
  if (!treated) return;
  std::vector<std::string> seen;
  for (const std::string& order : stack_.axis_orders) {
    const std::string visible = without_small_axes(mesh.corner, order);
    if (!wanted(search_.axis_order, order) || among(seen, visible)) continue;
    if (experiment_.cluster.groups.size() > 1 && order != specs::to_string(specs::default_axis_order))
      continue;
    seen.push_back(visible);
    mesh.corner.order = specs::axis_order_from(order).value_or(specs::default_axis_order);
    meshes_.push_back(mesh);
  }
}

/// Whether the optimizer may be anywhere.
bool WrittenOutSpace::updates(const ZeroTreatment& zero) const {
  const std::vector<OffloadTreatment> places = offload(OffloadedPart::optimizer, {}, zero);
  return std::any_of(places.begin(), places.end(),
                     [&](const OffloadTreatment& place) { return !delayed_updates(place).empty(); });
}

bool WrittenOutSpace::experts_allowed(const RegularPlacement& mesh) const {
  if (mesh.tensor % mesh.expert_tensor != 0 || !wanted(search_.expert, mesh.expert) ||
      !wanted(search_.expert_tensor, mesh.expert_tensor))
    return false;
  if (mesh.expert > 1 && !stack_.expert_parallel) return false;
  return mesh.expert_tensor == 1 || mesh.expert_tensor == mesh.tensor || stack_.expert_tensor_parallel;
}

// The degrees against the model and the cluster: with one micro-batch, since neither the micro-batch nor the
// treatment changes what the check judges.
// On several kinds of nodes: a pipeline rank, or one of the replicas of two kinds, is on nodes of one.
bool WrittenOutSpace::groups_allowed(const RegularPlacement& mesh) const {
  const auto& groups = experiment_.cluster.groups;
  if (groups.size() == 1) return true;
  const auto all_hold = [&](std::int64_t devices) {
    return std::all_of(groups.begin(), groups.end(), [&](const specs::ClusterGroup& group) {
      return group.nodes * group.node.devices % devices == 0;
    });
  };
  return (mesh.pipeline > 1 && all_hold(mesh.tensor * mesh.context * mesh.data)) ||
         (groups.size() == 2 && search_.unequal_shares &&
          all_hold(mesh.tensor * mesh.context * mesh.pipeline));
}

bool WrittenOutSpace::shape_allowed(const RegularPlacement& mesh) const {
  RegularPlacement whole = mesh;
  whole.micro_batch = experiment_.training.global_batch / mesh.data;
  whole.accumulation = 1;
  return specs::placement_violations(specs::regular_placement(whole, layers_), experiment_.model,
                                     experiment_.cluster, experiment_.training)
      .empty();
}

std::vector<WrittenOutSchedule> WrittenOutSpace::schedules(std::int64_t pipeline,
                                                           std::int64_t accumulation) const {
  if (pipeline == 1) return {{}};
  std::vector<WrittenOutSchedule> allowed;
  for (const auto& [kind, name] : specs::EnumNames<ScheduleKind>::names)
    for (std::int64_t stages = 1; stages * pipeline <= layers_; ++stages) {
      if ((kind == ScheduleKind::interleaved) != (stages > 1) && kind != ScheduleKind::zero_bubble_v &&
          kind != ScheduleKind::dual_pipe_v)
        continue;
      const bool uneven = layers_ % (pipeline * stages) != 0;
      if (uneven && (stages > 1 || !search_.uneven_stages || !stack_.uneven_stages)) continue;
      if (!among(stack_.schedules, kind) || !wanted(search_.schedule, kind) ||
          !wanted(search_.virtual_stages, stages))
        continue;
      for (std::int64_t group = 0; group <= accumulation; ++group)
        if (group_allowed(kind, pipeline, group) &&
            specs::schedule_refusal(kind, pipeline, stages, accumulation, group).empty())
          allowed.push_back({kind, stages, group});
    }
  return allowed;
}

std::int64_t WrittenOutSpace::largest_group() const {
  std::int64_t largest = 0;
  for (const std::int64_t group : search_.micro_batch_group) largest = std::max(largest, group);
  return largest;
}

/// Groups of micro-batches are those that [search] names; as many as there are pipeline ranks are 0.
bool WrittenOutSpace::group_allowed(ScheduleKind kind, std::int64_t pipeline, std::int64_t group) const {
  const std::vector<std::int64_t>& named = search_.micro_batch_group;
  if (group == 0) return kind != ScheduleKind::interleaved || wanted(named, group) || among(named, pipeline);
  return kind == ScheduleKind::interleaved && stack_.micro_batch_groups && group != pipeline &&
         among(named, group);
}

const std::vector<specs::ModuleTreatments>& WrittenOutSpace::modules(const RegularPlacement& mesh) const {
  const auto [found, added] = modules_.try_emplace({mesh.tensor, mesh.context});
  if (added) found->second = judged_modules(mesh);
  return found->second;
}

// Every degree of every module, judged one by one.
std::vector<specs::ModuleTreatments> WrittenOutSpace::judged_modules(const RegularPlacement& mesh) const {
  using specs::OutputLayerMode;
  using specs::ReplicaWork;
  if (mesh.tensor == 1) return {specs::ModuleTreatments{}};
  const bool divides = experiment_.training.sequence_length / mesh.context % mesh.tensor == 0;
  const auto named = [&](const std::vector<std::int64_t>& restriction, std::int64_t degree) {
    return wanted(restriction, degree) || (degree == 0 && among(restriction, mesh.tensor));
  };
  std::vector<std::pair<std::int64_t, ReplicaWork>> copies{{0, ReplicaWork::redundant}};
  for (std::int64_t degree = 1; degree < mesh.tensor; ++degree) {
    if (mesh.tensor % degree != 0 || !stack_.module_tensor_degrees) continue;
    copies.emplace_back(degree, ReplicaWork::redundant);
    if (divides) copies.emplace_back(degree, ReplicaWork::token_share);
  }
  std::vector<specs::ModuleTreatments> allowed;
  for (const auto& [attention, attention_work] : copies)
    for (const auto& [feed_forward, feed_forward_work] : copies)
      for (const auto& [embedding, embedding_work] : copies)
        for (const auto& [output, output_work] : copies)
          for (const auto& [mode, name] : specs::EnumNames<OutputLayerMode>::names) {
            const bool shared = mode == OutputLayerMode::token_parallel;
            // A shared output layer has one choice, which stands at degree 0 here.
            const std::int64_t of_output = shared ? 1 : output;
            if (attention_work != ReplicaWork::redundant || output_work != ReplicaWork::redundant ||
                (shared && (output != 0 || !divides || !among(stack_.output_modes, mode))))
              continue;
            const specs::AttentionSpec& heads = experiment_.model.attention;
            if (attention > 0 && !heads.latent && heads.kv_heads % attention != 0 &&
                attention % heads.kv_heads != 0)
              continue;
            if (experiment_.model.tied_embeddings && embedding != 0) continue;
            if (named(search_.attention_tensor, attention) &&
                named(search_.feed_forward_tensor, feed_forward) &&
                named(search_.embedding_tensor, embedding) && named(search_.output_tensor, of_output) &&
                wanted(search_.output_mode, mode))
              allowed.push_back({attention, feed_forward, embedding, of_output, attention_work,
                                 feed_forward_work, embedding_work, mode});
          }
  return allowed;
}

std::vector<bool> WrittenOutSpace::delayed_updates(const OffloadTreatment& optimizer) const {
  if (optimizer.device == OffloadDevice::none) return {false};
  std::vector<bool> allowed;
  if (wanted(search_.delayed_update, false)) allowed.push_back(false);
  if (among(search_.delayed_update, true) && stack_.delayed_update) allowed.push_back(true);
  return allowed;
}

std::vector<bool> WrittenOutSpace::sequence_parallel(const RegularPlacement& mesh) const {
  if (mesh.tensor == 1) return {false};
  std::vector<bool> allowed;
  for (const bool on : {false, true}) {
    const bool able = !on || (stack_.sequence_parallel &&
                              experiment_.training.sequence_length / mesh.context % mesh.tensor == 0);
    if (able && wanted(search_.sequence_parallel, on)) allowed.push_back(on);
  }
  return allowed;
}

/// Whether the numbers of layers that [search] asks for can be had.
bool WrittenOutSpace::numbered(Recomputation mode) const {
  if (search_.recomputed_layers.empty() || mode == Recomputation::none) return true;
  switch (stack_.recomputed_layers) {
    case specs::RecomputedLayerNumbers::all:
      return false;
    case specs::RecomputedLayerNumbers::alike:
      return mode == Recomputation::full;
    case specs::RecomputedLayerNumbers::each:
      return true;
  }
  return false;
}

std::vector<Recomputation> WrittenOutSpace::recomputations() const {
  std::vector<Recomputation> allowed;
  for (const Recomputation mode : {Recomputation::none, Recomputation::selective, Recomputation::full})
    if (among(stack_.recomputations, mode) && wanted(search_.recomputation, mode) && numbered(mode))
      allowed.push_back(mode);
  return allowed;
}

/// Counts the replicas of each parameter on each node.
bool WrittenOutSpace::shards_fill_nodes(const RegularPlacement& mesh) const {
  if (!among(stack_.shard_scopes, ShardScope::node)) return true;
  const std::int64_t devices = experiment_.cluster.groups.front().node.devices;
  for (const std::string& order : stack_.axis_orders) {
    const bool of_mixed = experiment_.cluster.groups.size() > 1;
    if (!wanted(search_.axis_order, order) ||
        (of_mixed && order != specs::to_string(specs::default_axis_order)))
      continue;
    const std::string visible = without_small_axes(mesh, order);
    if (mesh.context > 1 && mesh.data > 1 && visible.find("cp-dp") == std::string::npos &&
        visible.find("dp-cp") == std::string::npos)
      return false;
    std::map<std::array<std::int64_t, 3>, std::int64_t> replicas;  // by tensor and pipeline index and node
    for (std::int64_t rank = 0; rank < mesh.tensor * mesh.context * mesh.data * mesh.pipeline; ++rank) {
      std::int64_t left = rank, tensor = 0, pipeline = 0;
      for (std::size_t at = 0; at < order.size(); at += 3) {
        const std::string_view axis = std::string_view(order).substr(at, 2);
        const std::int64_t index = left % size_of(mesh, axis);
        left /= size_of(mesh, axis);
        if (axis == "tp") tensor = index;
        if (axis == "pp") pipeline = index;
      }
      ++replicas[{tensor, pipeline, rank / devices}];
    }
    for (const auto& [where, count] : replicas)
      if (count != replicas.begin()->second) return false;
  }
  return true;
}

std::vector<ZeroTreatment> WrittenOutSpace::zeros(const RegularPlacement& mesh) const {
  const std::int64_t replicas = mesh.data * mesh.context;
  if (replicas == 1) {
    std::vector<ZeroTreatment> alone{{}};
    const std::int64_t gathering = 3;
    const bool gathers = mesh.pipeline == 1 || stack_.zero_stage_with_pipeline >= gathering;
    if (gathers && among(stack_.zero_stages, gathering) && stack_.parameter_offload.size() > 1 &&
        wanted(search_.zero_stage, gathering))
      alone.push_back({gathering, ShardScope::world});
    return alone;
  }
  std::vector<ZeroTreatment> allowed;
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    if (!among(stack_.zero_stages, stage) || !wanted(search_.zero_stage, stage)) continue;
    if (mesh.pipeline > 1 && stage > stack_.zero_stage_with_pipeline) continue;
    const std::int64_t per_node = experiment_.cluster.groups.front().node.devices / mesh.tensor;
    if (stage == 0 || per_node <= 1 || per_node >= replicas || !shards_fill_nodes(mesh)) {
      allowed.push_back({stage, ShardScope::world});
      continue;
    }
    for (const ShardScope scope : {ShardScope::world, ShardScope::node})
      if (among(stack_.shard_scopes, scope) && wanted(search_.shard_scope, scope))
        allowed.push_back({stage, scope});
  }
  return allowed;
}

std::vector<std::int64_t> WrittenOutSpace::local_steps(const RegularPlacement& mesh,
                                                       const ZeroTreatment& zero) const {
  if (mesh.data == 1 || zero.stage > 0) return {1};
  std::vector<std::int64_t> allowed;
  for (const std::int64_t steps : search_.local_steps)
    if (steps == 1 || stack_.local_steps) allowed.push_back(steps);
  return allowed;
}

std::vector<OffloadTreatment> WrittenOutSpace::offload(OffloadedPart part, const RegularPlacement& mesh,
                                                       const ZeroTreatment& zero) const {
  const bool of_optimizer = part == OffloadedPart::optimizer,
             of_parameters = part == OffloadedPart::parameters;
  const std::vector<OffloadDevice>& offered = of_optimizer    ? stack_.optimizer_offload
                                              : of_parameters ? stack_.parameter_offload
                                                              : stack_.activation_offload;
  const std::vector<specs::OffloadOption>& restriction = of_optimizer    ? search_.offload_optimizer
                                                         : of_parameters ? search_.offload_parameters
                                                                         : search_.offload_activations;
  const auto named = [&](OffloadDevice device, std::int64_t eighths) {
    return wanted(restriction, specs::OffloadOption{device, eighths}) ||
           among(restriction, specs::OffloadOption{device});
  };
  std::vector<OffloadTreatment> allowed;
  if (named(OffloadDevice::none, 0)) allowed.push_back({});
  const bool of_activations = !of_optimizer && !of_parameters;
  for (const OffloadDevice device : {OffloadDevice::cpu, OffloadDevice::nvme}) {
    if (!among(offered, device) || (of_parameters && zero.stage < 3) ||
        (of_activations && mesh.pipeline > 1 && !stack_.activation_offload_with_pipeline))
      continue;
    for (std::int64_t eighths = 1; eighths <= 8; ++eighths)
      if (named(device, eighths)) allowed.push_back({device, eighths});
  }
  return allowed;
}

}  // namespace planner
