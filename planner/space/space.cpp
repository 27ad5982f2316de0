#include "planner/space/space.h"

#include <algorithm>

#include "cost_models/bucket_sizes.h"
#include "planner/space/group_layouts.h"

namespace planner {
namespace {

using specs::OffloadDevice;
using specs::OffloadTreatment;

constexpr std::array all_recomputations{specs::Recomputation::none, specs::Recomputation::selective,
                                        specs::Recomputation::full};
/// Virtual stages that a kind may have with `layers_per_rank` layers on a rank.
std::pair<std::int64_t, std::int64_t> virtual_stage_range(specs::ScheduleKind kind,
                                                          std::int64_t layers_per_rank) {
  switch (kind) {
    case specs::ScheduleKind::interleaved:
      return {2, layers_per_rank};
    case specs::ScheduleKind::zero_bubble_v:
    case specs::ScheduleKind::dual_pipe_v:
      return {2, 2};
    default:
      return {1, 1};
  }
}

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor * divisor != number) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

specs::RegularPlacement MeshSpace::corner() const {
  specs::RegularPlacement point;
  point.tensor = mesh.tensor;
  point.context = mesh.context;
  point.pipeline = mesh.pipeline;
  point.data = mesh.data;
  point.expert = mesh.expert;
  point.expert_tensor = mesh.expert_tensor;
  point.order = order;
  point.buckets = buckets;
  return point;
}

Space::Space(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment), stack_(stack), legality_(experiment, stack) {
  const std::int64_t devices = experiment.cluster.devices();
  for (const std::int64_t degree : divisors(experiment.model.attention.heads))
    if (degree <= devices && !legality_.tensor(degree)) tensor_degrees_.push_back(degree);
  for (const std::int64_t degree : divisors(experiment.training.sequence_length))
    if (degree <= devices && !legality_.context(degree)) context_degrees_.push_back(degree);
  for (std::int64_t degree = 1; degree <= std::min(devices, specs::block_count(experiment.model)); ++degree)
    if (!legality_.pipeline(degree)) pipeline_degrees_.push_back(degree);
  for (const std::int64_t degree : divisors(experiment.training.global_batch))
    if (degree <= devices && !legality_.data(degree)) data_degrees_.push_back(degree);
  for (const specs::Recomputation mode : all_recomputations)
    if (!legality_.recomputation(mode)) recomputations_.push_back(mode);
  for (const std::int64_t steps : experiment.search.local_steps)
    if (!legality_.local_steps({.data = 2}, {}, steps)) local_steps_.push_back(steps);
  for (const OffloadTreatment& optimizer : legality_.offload_choices(OffloadPart::optimizer))
    for (const bool delayed : {false, true})
      if (!legality_.delayed_update({.optimizer = optimizer, .delayed_update = delayed}))
        (delayed ? offload_.delayed_optimizer : offload_.optimizer).push_back(optimizer);
  offload_.parameters = legality_.offload_choices(OffloadPart::parameters);
  offload_.activations = legality_.offload_choices(OffloadPart::activations);
  if (!offload_.parameters.empty() && offload_.parameters.front() == OffloadTreatment{})
    parameters_stay_ = {OffloadTreatment{}};
  if (!offload_.activations.empty() && offload_.activations.front() == OffloadTreatment{})
    activations_stay_ = {OffloadTreatment{}};

  const std::int64_t devices_per_node = experiment.cluster.groups.front().node.devices;
  std::int64_t world_size = devices;
  for (std::int64_t idle = 0; idle <= experiment.search.idle_nodes && world_size > 0; ++idle) {
    add_meshes(world_size);
    world_size -= devices_per_node;
  }
  if (is_mixed(experiment.cluster)) return;  // used whole
  for (world_size = devices; meshes_.empty() && world_size > 0;) {
    world_size = largest_legal_world_size(world_size - 1);
    add_meshes(world_size);
  }
}

std::int64_t Space::largest_world_size() const {
  std::int64_t largest = 0;
  for (const MeshSpace& space : meshes_) largest = std::max(largest, space.mesh.world_size());
  return largest;
}

bool Space::contains_world_size(std::int64_t world_size) const {
  return std::any_of(meshes_.begin(), meshes_.end(),
                     [&](const MeshSpace& space) { return space.mesh.world_size() == world_size; });
}

const std::vector<OffloadTreatment>& Space::parameter_offload(const specs::ZeroTreatment& zero) const {
  return zero.stage >= 3 ? offload_.parameters : parameters_stay_;
}

const std::vector<OffloadTreatment>& Space::activation_offload(const MeshDegrees& mesh) const {
  return mesh.pipeline == 1 || stack_.activation_offload_with_pipeline ? offload_.activations
                                                                       : activations_stay_;
}

const std::vector<std::int64_t>& Space::local_steps(const MeshSpace& mesh,
                                                    const specs::ZeroTreatment& zero) const {
  static const std::vector<std::int64_t> every_step{1};
  return mesh.mesh.data > 1 && zero.stage == 0 ? local_steps_ : every_step;
}

std::uint64_t Space::treatments_of_one_kind(const MeshSpace& mesh) const {
  std::uint64_t parameters = 0;
  for (const specs::ZeroTreatment& zero : zeros(mesh))
    parameters += parameter_offload(zero).size() * local_steps(mesh, zero).size();
  return parameters * (offload_.optimizer.size() + offload_.delayed_optimizer.size()) *
         activation_offload(mesh.mesh).size();
}

std::uint64_t Space::outer_points(const MeshSpace& mesh) const {
  std::uint64_t pairs = 0;
  for (const BatchChoice& batch : batches(mesh)) pairs += schedules(batch).size();
  return pairs * kinds(mesh) * recomputations_.size() * treatments_of_one_kind(mesh);
}

std::uint64_t Space::outer_points() const {
  std::uint64_t total = 0;
  for (const MeshSpace& mesh : meshes_) total += outer_points(mesh);
  return total;
}

// The largest product of legal degrees that does not exceed `devices`; 0 without one.
std::int64_t Space::largest_legal_world_size(std::int64_t devices) const {
  std::int64_t largest = 0;
  for (const std::int64_t tensor : tensor_degrees_)
    for (const std::int64_t context : context_degrees_)
      for (const std::int64_t pipeline : pipeline_degrees_) {
        const std::int64_t replica = tensor * context * pipeline;
        if (replica > devices) break;
        const auto above = std::upper_bound(data_degrees_.begin(), data_degrees_.end(), devices / replica);
        if (above != data_degrees_.begin()) largest = std::max(largest, replica * *std::prev(above));
      }
  return largest;
}

void Space::add_meshes(std::int64_t world_size) {
  for (const std::int64_t tensor : tensor_degrees_) {
    if (world_size % tensor != 0) continue;
    for (const std::int64_t context : context_degrees_) {
      if (world_size / tensor % context != 0) continue;
      const std::int64_t remaining = world_size / tensor / context;
      for (const std::int64_t pipeline : pipeline_degrees_) {
        if (remaining % pipeline != 0) continue;
        const std::int64_t data = remaining / pipeline;
        if (!std::binary_search(data_degrees_.begin(), data_degrees_.end(), data)) continue;
        const MeshDegrees dense{.tensor = tensor, .context = context, .pipeline = pipeline, .data = data};
        for (const MeshDegrees& mesh : with_expert_degrees(dense)) add_mesh(mesh);
      }
    }
  }
}

std::vector<MeshDegrees> Space::with_expert_degrees(const MeshDegrees& dense) const {
  const auto& mixture = experiment_.model.mixture;
  std::vector<MeshDegrees> meshes;
  const std::int64_t ranks = dense.tensor * dense.context * dense.data;
  for (const std::int64_t expert : divisors(mixture ? mixture->experts : 1))
    for (const std::int64_t expert_tensor : divisors(mixture ? dense.tensor : 1)) {
      if (ranks % (expert * expert_tensor) != 0) continue;
      MeshDegrees mesh = dense;
      mesh.expert = expert;
      mesh.expert_tensor = expert_tensor;
      if (!legality_.experts(mesh)) meshes.push_back(mesh);
    }
  return meshes;
}

void Space::add_mesh(const MeshDegrees& mesh) {
  if (legality_.groups(mesh)) return;
  MeshSpace space{.mesh = mesh, .sequence_parallel = {}};
  space.buckets = cost_models::bucket_sizes(experiment_, stack_, space.corner());
  for (const bool on : {false, true})
    if (!legality_.sequence_parallel(mesh, on)) space.sequence_parallel.push_back(on);
  space.batches = batch_list(mesh);
  space.zeros = zero_list(mesh);
  space.modules = module_list(mesh);
  if (outer_points(space) == 0) return;
  for (const specs::AxisOrder& order : legality_.axis_orders(mesh)) {
    space.order = order;
    meshes_.push_back(space);
  }
}

std::size_t Space::batch_list(const MeshDegrees& mesh) {
  const auto [found, added] = batch_index_.try_emplace({mesh.data, mesh.pipeline}, batch_lists_.size());
  if (!added) return found->second;
  std::vector<BatchChoice> batches;
  const std::int64_t share = experiment_.training.global_batch / mesh.data;
  for (const std::int64_t micro_batch : divisors(share)) {
    if (legality_.micro_batch(mesh, micro_batch)) continue;
    const BatchChoice batch{micro_batch, share / micro_batch, schedule_list(mesh, share / micro_batch)};
    if (!schedules(batch).empty()) batches.push_back(batch);
  }
  batch_lists_.push_back(std::move(batches));
  return found->second;
}

std::size_t Space::schedule_list(const MeshDegrees& mesh, std::int64_t accumulation) {
  // DualPipe alone asks for a number of micro-batches: two a pipeline rank.
  const bool long_enough = accumulation >= 2 * mesh.pipeline;
  std::int64_t groups = 0;
  for (const std::int64_t group : experiment_.search.micro_batch_group) groups += group <= accumulation;
  const auto [found, added] =
      schedule_index_.try_emplace({mesh.pipeline, long_enough, groups}, schedule_lists_.size());
  if (!added) return found->second;
  std::vector<ScheduleChoice> legal;
  if (mesh.pipeline == 1) {
    legal.push_back({});
  } else {
    const std::int64_t layers = specs::block_count(experiment_.model);
    const auto groups_of = [&](specs::ScheduleKind kind, std::int64_t pipeline) {
      return kind == specs::ScheduleKind::interleaved ? legality_.micro_batch_groups(pipeline)
                                                      : std::vector<std::int64_t>{0};
    };
    for (const specs::ScheduleKind kind : stack_.schedules) {
      const auto [first, last] = virtual_stage_range(kind, layers / mesh.pipeline);
      for (std::int64_t stages = first; stages <= last; ++stages)
        for (const std::int64_t group : groups_of(kind, mesh.pipeline))
          if (!legality_.schedule(mesh, accumulation, kind, stages, group))
            legal.push_back({kind, stages, group});
    }
  }
  schedule_lists_.push_back(std::move(legal));
  return found->second;
}

std::size_t Space::module_list(const MeshDegrees& mesh) {
  const auto [found, added] = module_index_.try_emplace({mesh.tensor, mesh.context}, module_lists_.size());
  if (added) module_lists_.push_back(legality_.module_choices(mesh));
  return found->second;
}

std::size_t Space::zero_list(const MeshDegrees& mesh) {
  const auto [found, added] = zero_index_.try_emplace({mesh.tensor, mesh.context, mesh.pipeline, mesh.data});
  if (!added) return found->second;
  std::vector<specs::ZeroTreatment> legal;
  for (std::int64_t stage = 0; stage <= 3; ++stage)
    for (const specs::ShardScope scope : {specs::ShardScope::world, specs::ShardScope::node}) {
      const specs::ZeroTreatment zero{stage, scope};
      if (stage == 0 && scope == specs::ShardScope::node) continue;
      if (!legality_.zero(mesh, zero)) legal.push_back(zero);
    }
  const auto alike = std::find(zero_lists_.begin(), zero_lists_.end(), legal);
  found->second = static_cast<std::size_t>(alike - zero_lists_.begin());
  if (alike == zero_lists_.end()) zero_lists_.push_back(std::move(legal));
  return found->second;
}

}  // namespace planner
