#include "specs/plan/placement_check.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/plan/placement_fit.h"
#include "specs/plan/placement_violation_list.h"
#include "specs/schedule/generate.h"

namespace specs {
namespace {

constexpr std::int64_t largest_bytes = std::int64_t{1} << 50;
constexpr std::int64_t most_stages = std::int64_t{1} << 20;

/// Whatever holds without a look at the model.
class StructureCheck {
 public:
  StructureCheck(const Placement& placement, const ModelSpec& model, const ClusterSpec& cluster,
                 const TrainingSpec& training)
      : placement_(placement),
        model_(model),
        cluster_(cluster),
        training_(training),
        blocks_(block_count(model)) {}

  std::vector<PlacementViolation> run() {
    check_counts();
    check_each_stage_alone();
    check_each_share_alone();
    if (!list_.empty()) return list_.take();  // the rules below divide by what was wrong
    check_schedule();
    check_units();
    check_devices();
    check_shares();
    check_fit(placement_, model_, training_, list_);
    return list_.take();
  }

 private:
  void check_counts() {
    list_.require_range("micro_batch", placement_.micro_batch, 1, largest_degree);
    list_.require_range("accumulation", placement_.accumulation, 1, largest_degree);
    list_.require_range("virtual_stages", placement_.virtual_stages, 1, most_stages);
    list_.require_range("micro_batch_group", placement_.micro_batch_group, 0, largest_degree);
    list_.require_range("local_steps", placement_.local_steps, 1, largest_degree);
    const BucketSizes& buckets = placement_.buckets;
    list_.require_range("buckets/gradient_bucket_bytes", buckets.gradient_bucket_bytes, 0, largest_bytes);
    list_.require_range("buckets/gather_bucket_bytes", buckets.gather_bucket_bytes, 0, largest_bytes);
    list_.require_range("buckets/minimum_message_bytes", buckets.minimum_message_bytes, 0, largest_bytes);
    list_.require_range("buckets/prefetch_units", buckets.prefetch_units, 0, largest_degree);
    const auto stages = static_cast<std::int64_t>(placement_.stages.size());
    if (stages < 1 || stages > most_stages)
      list_.refuse("stages", fmt::format("{} stages is not in [1, {}]", stages, most_stages));
    else if (placement_.virtual_stages >= 1 && stages % placement_.virtual_stages != 0)
      list_.refuse("stages",
                   fmt::format("stages {} % virtual_stages {} = {}, must be 0", stages,
                               placement_.virtual_stages, stages % placement_.virtual_stages),
                   fmt::format("virtual_stages of {}", divisors(stages)));
  }

  void check_each_stage_alone() {
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      const auto field = [&](std::string_view name) { return stage_field(index, name); };
      list_.require_range(field("pipeline_rank"), stage.pipeline_rank, 0,
                          static_cast<std::int64_t>(placement_.stages.size()) - 1);
      list_.require_range(field("device_group"), stage.device_group, 0,
                          static_cast<std::int64_t>(cluster_.groups.size()) - 1);
      check_mesh_alone(index, stage.mesh);
      check_device_set_alone(index, stage.devices);
      check_modules_alone(index, stage);
      check_treatments_alone(index, stage);
    }
  }

  void check_mesh_alone(std::size_t index, const StageMesh& mesh) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    list_.require_range(field("mesh/tensor"), mesh.tensor, 1, largest_degree);
    list_.require_range(field("mesh/context"), mesh.context, 1, largest_degree);
    list_.require_range(field("mesh/data"), mesh.data, 1, largest_degree);
    list_.require_range(field("mesh/expert"), mesh.expert, 1, largest_degree);
    list_.require_range(field("mesh/expert_tensor"), mesh.expert_tensor, 1, largest_degree);
    AxisOrder sorted = mesh.order;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      list_.refuse(field("mesh/order"), fmt::format("{} names an axis twice", to_string(mesh.order)),
                   fmt::format("each of {} once", fmt::join(all_names<MeshAxis>(), ", ")));
  }

  void check_device_set_alone(std::size_t index, const DeviceSet& devices) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    const std::int64_t most = cluster_.devices();
    list_.require_range(field("devices/first"), devices.first, 0, most - 1);
    list_.require_range(field("devices/block"), devices.block, 1, most);
    list_.require_range(field("devices/blocks"), devices.blocks, 1, most);
    if (devices.blocks == 1)
      list_.require_range(field("devices/stride"), devices.stride, 0, 0);
    else
      list_.require_range(field("devices/stride"), devices.stride, devices.block, most);
  }

  void check_modules_alone(std::size_t index, const PipelineStage& stage) {
    const auto check = [&](std::string_view name, std::int64_t degree) {
      const StageField field = stage_field(index, name);
      if (degree < 0 || degree > stage.mesh.tensor)
        list_.refuse(field, fmt::format("{} is not in [0, tensor {}]", degree, stage.mesh.tensor));
      else if (degree > 0 && degree == stage.mesh.tensor)
        list_.refuse(field, fmt::format("{} is the stage's own degree", degree), "0, which says so");
      else if (degree > 0 && stage.mesh.tensor % degree != 0)
        list_.refuse(field,
                     fmt::format("tensor {} % {} = {}, must be 0", stage.mesh.tensor, degree,
                                 stage.mesh.tensor % degree),
                     fmt::format("0 (the stage's), or one of {}", divisors(stage.mesh.tensor)));
    };
    check("modules/attention_tensor", stage.modules.attention_tensor);
    check("modules/feed_forward_tensor", stage.modules.feed_forward_tensor);
    check("modules/embedding_tensor", stage.modules.embedding_tensor);
    check("modules/output_tensor", stage.modules.output_tensor);
    if (stage.modules.output_mode == OutputLayerMode::token_parallel && stage.mesh.tensor > 1 &&
        stage.modules.output_tensor != 1)
      list_.refuse(stage_field(index, "modules/output_tensor"),
                   "a token-parallel output layer holds the whole table", "1");
  }

  void check_treatments_alone(std::size_t index, const PipelineStage& stage) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    list_.require_range(field("zero/stage"), stage.zero.stage, 0, 3);
    check_shards(index, stage);
    check_offload(field("offload/optimizer"), stage, stage.offload.optimizer);
    check_offload(field("offload/parameters"), stage, stage.offload.parameters);
    check_offload(field("offload/activations"), stage, stage.offload.activations);
    if (stage.offload.delayed_update && stage.offload.optimizer.device == OffloadDevice::none)
      list_.refuse(field("offload/delayed_update"),
                   "an update can only be delayed where the optimizer is offloaded",
                   "false, or offload the optimizer to cpu or nvme");
    for (const RecomputationRun& run : stage.recomputation) {
      list_.require_range(field("recomputation"), run.layers, 1, blocks_);
      list_.require_range(field("recomputation"), run.block_layers, 1, blocks_);
      if (run.modules != 0 && run.mode != Recomputation::selective)
        list_.refuse(field("recomputation"), fmt::format("modules are named for mode {}", name_of(run.mode)),
                     "mode selective, or no modules");
    }
  }

  void check_shards(std::size_t index, const PipelineStage& stage) {
    const ZeroTreatment& zero = stage.zero;
    const std::int64_t sharded = multiply({stage.mesh.data, stage.mesh.context});
    const StageField field = stage_field(index, "zero/shard_ranks");
    if (zero.shard_ranks < 0 || zero.shard_ranks > sharded)
      list_.require_range(field, zero.shard_ranks, 0, sharded);
    else if (zero.shard_ranks > 0 && sharded % zero.shard_ranks != 0)
      list_.refuse(field,
                   fmt::format("data {} × context {} = {} % shard_ranks {} = {}, must be 0", stage.mesh.data,
                               stage.mesh.context, sharded, zero.shard_ranks, sharded % zero.shard_ranks),
                   fmt::format("0 (as the scope says), or one of {}", divisors(sharded)));
    const std::int64_t units = std::clamp(stage.units.end, std::int64_t{0}, unit_count(blocks_));
    list_.require_range(stage_field(index, "zero/kept_units"), zero.kept_units, 0,
                        zero.stage == 3 ? units : 0);
  }

  void check_offload(const StageField& field, const PipelineStage& stage, const OffloadTreatment& treatment) {
    if (treatment.eighths < 0 || treatment.eighths > 8)
      list_.require_range(std::string(field) + "/eighths", treatment.eighths, 0, 8);
    if ((treatment.device == OffloadDevice::none) != (treatment.eighths == 0))
      list_.refuse(field,
                   fmt::format("{} eighths to device {}", treatment.eighths, name_of(treatment.device)),
                   "0 eighths with none, 1 to 8 with cpu or nvme");
    const auto group = static_cast<std::size_t>(stage.device_group);
    if (treatment.device == OffloadDevice::nvme && group < cluster_.groups.size() &&
        cluster_.groups[group].node.nvme_bytes == 0)
      list_.refuse(std::string(field) + "/device",
                   fmt::format("node {} has no NVMe storage", cluster_.groups[group].node.name),
                   "cpu, or give the node nvme_bytes");
  }

  void check_schedule_of(const std::string& field, std::int64_t micro_batches) {
    const std::string refusal =
        schedule_refusal(placement_.schedule, placement_.pipeline_ranks(), placement_.virtual_stages,
                         micro_batches, placement_.micro_batch_group);
    if (!refusal.empty()) list_.refuse(field, refusal);
  }

  void check_schedule() {
    if (placement_.replica_shares.empty()) check_schedule_of("schedule", placement_.accumulation);
    for (std::size_t index = 0; index < placement_.replica_shares.size(); ++index)
      check_schedule_of(fmt::format("replica_shares/{}/micro_batches", index),
                        placement_.replica_shares[index].micro_batches);
    const bool there_and_back = placement_.schedule == ScheduleKind::zero_bubble_v ||
                                placement_.schedule == ScheduleKind::dual_pipe_v;
    const std::int64_t ranks = placement_.pipeline_ranks();
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const auto stage = static_cast<std::int64_t>(index);
      const bool backwards = there_and_back && stage / ranks % 2 == 1;
      const std::int64_t expected = backwards ? ranks - 1 - stage % ranks : stage % ranks;
      if (placement_.stages[index].pipeline_rank != expected)
        list_.refuse(stage_field(index, "pipeline_rank"),
                     fmt::format("{} holds stage {}, but schedule {} on {} pipeline ranks puts it on {}",
                                 placement_.stages[index].pipeline_rank, index, name_of(placement_.schedule),
                                 ranks, expected));
    }
  }

  void check_units() {
    const std::int64_t count = unit_count(blocks_);
    std::int64_t next = 0;
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const UnitRange& units = placement_.stages[index].units;
      if (units.first != next)
        list_.refuse(stage_field(index, "units"),
                     fmt::format("starts at unit {}, but the stages before end at {}", units.first, next));
      if (units.end <= units.first || units.end > count) {
        list_.refuse(
            stage_field(index, "units"),
            fmt::format(
                "[{}, {}) is not a part of the model's {} units (2 × {} blocks + 2) with at least one unit",
                units.first, units.end, count, blocks_));
        return;
      }
      next = units.end;
    }
    if (next != count)
      list_.refuse("stages", fmt::format("the stages hold {} units, the model has 2 × {} blocks + 2 = {}",
                                         next, blocks_, count));
  }

  void check_devices() {
    const std::int64_t ranks = placement_.pipeline_ranks();
    std::int64_t world = 0;
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      const std::int64_t mesh_ranks = multiply({stage.mesh.tensor, stage.mesh.context, stage.mesh.data});
      const std::int64_t devices = multiply({stage.devices.block, stage.devices.blocks});
      if (mesh_ranks != devices)
        list_.refuse(
            stage_field(index, "devices"),
            fmt::format("tensor {} × context {} × data {} = {} ranks, but {} devices", stage.mesh.tensor,
                        stage.mesh.context, stage.mesh.data, mesh_ranks, devices));
      const auto holder =
          std::find_if(placement_.stages.begin(), placement_.stages.end(),
                       [&](const auto& other) { return other.pipeline_rank == stage.pipeline_rank; });
      if (static_cast<std::size_t>(holder - placement_.stages.begin()) == index)
        world = std::min(world + devices, std::numeric_limits<std::int32_t>::max() * std::int64_t{2});
      else if (holder->devices != stage.devices || holder->device_group != stage.device_group)
        list_.refuse(stage_field(index, "devices"),
                     fmt::format("pipeline rank {} has other devices in stage {}", stage.pipeline_rank,
                                 holder - placement_.stages.begin()));
    }
    if (world > cluster_.devices())
      list_.refuse("stages", fmt::format("the {} pipeline ranks use {} devices, the cluster has {}", ranks,
                                         world, cluster_.devices()));
    else if (list_.empty())
      check_cover(world);
    if (list_.empty()) check_axis_order();
  }

  /// Where all stages have one mesh, its axis order says which ranks they have.
  void check_axis_order() {
    const StageMesh& mesh = placement_.stages.front().mesh;
    for (const PipelineStage& stage : placement_.stages)
      if (stage.mesh != mesh) return;
    const std::int64_t ranks = placement_.pipeline_ranks();
    std::int64_t stride = 1;  // between ranks whose pipeline coordinates differ by one
    for (auto axis = mesh.order.begin(); *axis != MeshAxis::pipeline; ++axis)
      stride *= *axis == MeshAxis::tensor    ? mesh.tensor
                : *axis == MeshAxis::context ? mesh.context
                                             : mesh.data;
    std::vector<bool> checked(static_cast<std::size_t>(ranks));  // all stages of a rank have its devices
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      if (checked[static_cast<std::size_t>(stage.pipeline_rank)]) continue;
      checked[static_cast<std::size_t>(stage.pipeline_rank)] = true;
      const DeviceSet& devices = stage.devices;
      for (std::int64_t block = 0; block < devices.blocks; ++block) {
        const std::int64_t first = devices.first + block * devices.stride;
        // Ranks up to the next multiple of the stride are on one pipeline rank.
        for (std::int64_t rank = first; rank < first + devices.block; rank = (rank / stride + 1) * stride) {
          if (rank / stride % ranks == stage.pipeline_rank) continue;
          return list_.refuse(
              stage_field(index, "devices"),
              fmt::format("order {} puts rank {} on pipeline rank {}, not {}", to_string(mesh.order), rank,
                          rank / stride % ranks, stage.pipeline_rank));
        }
      }
    }
  }

  /// Every rank of the world belongs to one pipeline rank. Marks them one by one.
  void check_cover(std::int64_t world) {
    std::vector<std::int64_t> owner(static_cast<std::size_t>(world), -1);
    std::vector<bool> marked(static_cast<std::size_t>(placement_.pipeline_ranks()));
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      if (marked[static_cast<std::size_t>(stage.pipeline_rank)]) continue;  // its devices are the same
      marked[static_cast<std::size_t>(stage.pipeline_rank)] = true;
      for (std::int64_t run = 0; run < stage.devices.blocks; ++run)
        for (std::int64_t offset = 0; offset < stage.devices.block; ++offset) {
          const std::int64_t rank = stage.devices.first + run * stage.devices.stride + offset;
          if (rank >= world)
            return list_.refuse(stage_field(index, "devices"),
                                fmt::format("holds rank {}, but the stages together have {} ranks, 0 to {}",
                                            rank, world, world - 1));
          std::int64_t& holder = owner[static_cast<std::size_t>(rank)];
          if (holder != -1 && holder != stage.pipeline_rank)
            return list_.refuse(stage_field(index, "devices"),
                                fmt::format("rank {} belongs to pipeline ranks {} and {}", rank, holder,
                                            stage.pipeline_rank));
          holder = stage.pipeline_rank;
        }
    }
  }

  void check_each_share_alone() {
    for (std::size_t index = 0; index < placement_.replica_shares.size(); ++index) {
      const ReplicaShare& share = placement_.replica_shares[index];
      const std::string field = fmt::format("replica_shares/{}", index);
      list_.require_range(field + "/replicas", share.replicas, 1, largest_degree);
      list_.require_range(field + "/micro_batches", share.micro_batches, 1, largest_degree);
      list_.require_range(field + "/device_group", share.device_group, 0,
                          static_cast<std::int64_t>(cluster_.groups.size()) - 1);
    }
  }

  void check_shares() {
    if (placement_.replica_shares.empty()) return;
    std::int64_t micro_batches = 0;
    for (const ReplicaShare& share : placement_.replica_shares)
      micro_batches = std::min(micro_batches + share.replicas * share.micro_batches, largest_bytes);
    const std::int64_t batch = multiply({placement_.micro_batch, micro_batches});
    if (batch != training_.global_batch)
      list_.refuse("replica_shares",
                   fmt::format("micro_batch {} × {} micro-batches = {}, must be global_batch {}",
                               placement_.micro_batch, micro_batches, batch, training_.global_batch));
  }

  const Placement& placement_;
  const ModelSpec& model_;
  const ClusterSpec& cluster_;
  const TrainingSpec& training_;
  std::int64_t blocks_;
  PlacementViolationList list_;
};

}  // namespace

std::vector<PlacementViolation> placement_violations(const Placement& placement, const ModelSpec& model,
                                                     const ClusterSpec& cluster,
                                                     const TrainingSpec& training) {
  return StructureCheck(placement, model, cluster, training).run();
}

Diagnostics check_placement(const Placement& placement, const ModelSpec& model, const ClusterSpec& cluster,
                            const TrainingSpec& training, const SourcePosition& position) {
  Diagnostics diagnostics;
  for (const PlacementViolation& violation : placement_violations(placement, model, cluster, training)) {
    const std::string lead = violation.field.empty() ? "placement" : "placement/" + violation.field;
    diagnostics.error(position, lead + ": " + violation.message, violation.remedy);
  }
  return diagnostics;
}

}  // namespace specs
