#include "planner/space.h"

#include <algorithm>

namespace planner {
namespace {

using specs::OffloadDevice;

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

/// The bucket size of PyTorch's DistributedDataParallel (bucket_cap_mb = 25): large enough to fill a link,
/// small enough that the first reduction starts early in the backward pass.
constexpr std::int64_t bucket_bytes = std::int64_t{25} << 20;

specs::BucketSizes default_buckets(const MeshDegrees& mesh) {
  specs::BucketSizes buckets;
  if (mesh.data * mesh.context > 1) {
    buckets.gradient_bucket_bytes = bucket_bytes;
    buckets.gather_bucket_bytes = bucket_bytes;
  }
  return buckets;
}

/// Nothing, and each device with each share that [search] names; all of it where none is named.
std::vector<specs::OffloadTreatment> offload_treatments(const specs::SearchSpec& search) {
  constexpr std::int64_t all_eighths = 8;
  std::vector<std::int64_t> shares = search.offload_eighths;
  if (shares.empty()) shares.push_back(all_eighths);
  std::vector<specs::OffloadTreatment> treatments{{}};
  for (const OffloadDevice device : {OffloadDevice::cpu, OffloadDevice::nvme})
    for (const std::int64_t eighths : shares)
      if (eighths >= 1 && eighths <= all_eighths) treatments.push_back({device, eighths});
  return treatments;
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

std::uint64_t MeshSpace::candidates() const {
  std::uint64_t pairs = 0;
  for (const BatchChoice& batch : batches) pairs += batch.schedules.size();
  return pairs * treatments.size();
}

Space::Space(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment), stack_(stack), legality_(experiment, stack) {
  const std::int64_t devices = experiment.cluster.devices();
  for (const std::int64_t degree : divisors(experiment.model.attention.heads))
    if (!legality_.tensor(degree)) tensor_degrees_.push_back(degree);
  for (const std::int64_t degree : divisors(experiment.training.sequence_length))
    if (degree <= devices && !legality_.context(degree)) context_degrees_.push_back(degree);
  for (std::int64_t degree = 1; degree <= std::min(devices, specs::block_count(experiment.model)); ++degree)
    if (!legality_.pipeline(degree)) pipeline_degrees_.push_back(degree);

  const std::int64_t devices_per_node = experiment.cluster.groups.front().node.devices;
  std::int64_t world_size = devices;
  for (std::int64_t idle = 0; idle <= experiment.search.idle_nodes && world_size > 0; ++idle) {
    const std::vector<MeshSpace> found = meshes_for(world_size);
    meshes_.insert(meshes_.end(), found.begin(), found.end());
    world_size -= devices_per_node;
  }
  for (world_size = devices - 1; meshes_.empty() && world_size > 0; --world_size)
    meshes_ = meshes_for(world_size);
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

std::uint64_t Space::candidates() const {
  std::uint64_t total = 0;
  for (const MeshSpace& space : meshes_) total += space.candidates();
  return total;
}

std::vector<MeshSpace> Space::meshes_for(std::int64_t world_size) const {
  std::vector<MeshSpace> spaces;
  for (const std::int64_t tensor : tensor_degrees_) {
    if (world_size % tensor != 0) continue;
    for (const std::int64_t context : context_degrees_) {
      if (world_size / tensor % context != 0) continue;
      const std::int64_t remaining = world_size / tensor / context;
      for (const std::int64_t pipeline : pipeline_degrees_) {
        if (remaining % pipeline != 0) continue;
        const std::int64_t data = remaining / pipeline;
        if (experiment_.training.global_batch % data != 0 || legality_.data(data)) continue;
        const MeshDegrees dense{.tensor = tensor, .context = context, .pipeline = pipeline, .data = data};
        for (const MeshDegrees& mesh : with_expert_degrees(dense))
          if (MeshSpace space = mesh_space(mesh); space.candidates() > 0) spaces.push_back(std::move(space));
      }
    }
  }
  return spaces;
}

std::vector<MeshDegrees> Space::with_expert_degrees(const MeshDegrees& dense) const {
  const auto& mixture = experiment_.model.mixture;
  std::vector<MeshDegrees> meshes;
  for (const std::int64_t expert : divisors(mixture ? mixture->experts : 1))
    for (const std::int64_t expert_tensor : divisors(mixture ? dense.tensor : 1)) {
      MeshDegrees mesh = dense;
      mesh.expert = expert;
      mesh.expert_tensor = expert_tensor;
      if (!legality_.experts(mesh)) meshes.push_back(mesh);
    }
  return meshes;
}

MeshSpace Space::mesh_space(const MeshDegrees& mesh) const {
  MeshSpace space{mesh, {}, treatments(mesh), default_buckets(mesh)};
  const std::int64_t share = experiment_.training.global_batch / mesh.data;
  for (const std::int64_t micro_batch : divisors(share)) {
    if (legality_.micro_batch(mesh, micro_batch)) continue;
    BatchChoice batch{micro_batch, share / micro_batch, schedules(mesh, share / micro_batch)};
    if (!batch.schedules.empty()) space.batches.push_back(std::move(batch));
  }
  return space;
}

std::vector<ScheduleChoice> Space::schedules(const MeshDegrees& mesh, std::int64_t accumulation) const {
  if (mesh.pipeline == 1) return {ScheduleChoice{}};
  std::vector<ScheduleChoice> legal;
  for (const specs::ScheduleKind kind : stack_.schedules) {
    const auto [first, last] =
        virtual_stage_range(kind, specs::block_count(experiment_.model) / mesh.pipeline);
    for (std::int64_t stages = first; stages <= last; ++stages)
      if (!legality_.schedule(mesh, accumulation, kind, stages)) legal.push_back({kind, stages});
  }
  return legal;
}

std::vector<Treatment> Space::treatments(const MeshDegrees& mesh) const {
  std::vector<Treatment> legal;
  const std::vector<specs::OffloadTreatment> offloads = offload_treatments(experiment_.search);
  const auto add_offloads = [&](Treatment treatment) {
    for (const specs::OffloadTreatment& optimizer : offloads)
      for (const specs::OffloadTreatment& parameters : offloads)
        for (const specs::OffloadTreatment& activations : offloads) {
          treatment.offload = {optimizer, parameters, activations, false};
          if (!legality_.offload(treatment.offload, treatment.zero)) legal.push_back(treatment);
        }
  };
  for (const bool sequence_parallel : {false, true}) {
    if (legality_.sequence_parallel(mesh, sequence_parallel)) continue;
    for (const specs::Recomputation recomputation : all_recomputations) {
      if (legality_.recomputation(recomputation)) continue;
      for (std::int64_t stage = 0; stage <= 3; ++stage)
        for (const specs::ShardScope scope : {specs::ShardScope::world, specs::ShardScope::node}) {
          if (stage == 0 && scope == specs::ShardScope::node) continue;
          const specs::ZeroTreatment zero{stage, scope};
          if (!legality_.zero(mesh, zero))
            add_offloads({sequence_parallel, recomputation, zero, specs::StageOffload{}});
        }
    }
  }
  return legal;
}

}  // namespace planner
