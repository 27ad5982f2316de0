#include "specs/plan/placement_check.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/schedule/generate.h"

namespace specs {
namespace {

constexpr std::int64_t largest_degree = std::int64_t{1} << 24;
constexpr std::int64_t most_stages = std::int64_t{1} << 20;

/// The divisors of `number`, for remedies; the smaller ones where there are many.
std::string divisors(std::int64_t number) {
  constexpr std::size_t shown = 16;
  std::vector<std::int64_t> found;
  for (std::int64_t candidate = 1; candidate <= std::min(number, largest_degree) && found.size() <= shown;
       ++candidate)
    if (number % candidate == 0) found.push_back(candidate);
  const bool more = found.size() > shown;
  if (more) found.resize(shown);
  return fmt::format("{}{}", fmt::join(found, ", "), more ? ", …" : "");
}

class Checker {
 public:
  Checker(const Placement& placement, const ModelSpec& model, const ClusterSpec& cluster,
          const TrainingSpec& training)
      : placement_(placement),
        model_(model),
        cluster_(cluster),
        training_(training),
        blocks_(block_count(model)) {}

  std::vector<PlacementViolation> run() {
    check_counts();
    check_each_stage_alone();
    if (!violations_.empty()) return violations_;  // the rules below divide by what was wrong
    check_schedule();
    check_units();
    check_devices();
    check_shares();
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) check_stage_with_model(index);
    return violations_;
  }

 private:
  void refuse(std::string field, std::string message, std::string remedy = {}) {
    violations_.push_back({std::move(field), std::move(message), std::move(remedy)});
  }

  void require_range(const std::string& field, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value >= low && value <= high) return;
    refuse(field, fmt::format("{} is not in [{}, {}]", value, low, high));
  }

  static std::string stage_field(std::size_t index, std::string_view field) {
    return fmt::format("stages/{}/{}", index, field);
  }

  void check_counts() {
    require_range("micro_batch", placement_.micro_batch, 1, largest_degree);
    require_range("accumulation", placement_.accumulation, 1, largest_degree);
    require_range("virtual_stages", placement_.virtual_stages, 1, most_stages);
    require_range("micro_batch_group", placement_.micro_batch_group, 0, largest_degree);
    require_range("local_steps", placement_.local_steps, 1, largest_degree);
    const auto stages = static_cast<std::int64_t>(placement_.stages.size());
    if (stages < 1 || stages > most_stages)
      refuse("stages", fmt::format("{} stages is not in [1, {}]", stages, most_stages));
    else if (placement_.virtual_stages >= 1 && stages % placement_.virtual_stages != 0)
      refuse("stages",
             fmt::format("stages {} % virtual_stages {} = {}, must be 0", stages, placement_.virtual_stages,
                         stages % placement_.virtual_stages),
             fmt::format("virtual_stages of {}", divisors(stages)));
  }

  void check_each_stage_alone() {
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      const auto field = [&](std::string_view name) { return stage_field(index, name); };
      require_range(field("pipeline_rank"), stage.pipeline_rank, 0,
                    static_cast<std::int64_t>(placement_.stages.size()) - 1);
      require_range(field("device_group"), stage.device_group, 0,
                    static_cast<std::int64_t>(cluster_.groups.size()) - 1);
      check_mesh_alone(index, stage.mesh);
      check_device_set_alone(index, stage.devices);
      check_modules_alone(index, stage);
      check_treatments_alone(index, stage);
    }
  }

  void check_mesh_alone(std::size_t index, const StageMesh& mesh) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    require_range(field("mesh/tensor"), mesh.tensor, 1, largest_degree);
    require_range(field("mesh/context"), mesh.context, 1, largest_degree);
    require_range(field("mesh/data"), mesh.data, 1, largest_degree);
    require_range(field("mesh/expert"), mesh.expert, 1, largest_degree);
    require_range(field("mesh/expert_tensor"), mesh.expert_tensor, 1, largest_degree);
    AxisOrder sorted = mesh.order;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      refuse(field("mesh/order"), fmt::format("{} names an axis twice", to_string(mesh.order)),
             fmt::format("each of {} once", fmt::join(all_names<MeshAxis>(), ", ")));
  }

  void check_device_set_alone(std::size_t index, const DeviceSet& devices) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    const std::int64_t most = cluster_.devices();
    require_range(field("devices/first"), devices.first, 0, most - 1);
    require_range(field("devices/block"), devices.block, 1, most);
    require_range(field("devices/blocks"), devices.blocks, 1, most);
    if (devices.blocks == 1)
      require_range(field("devices/stride"), devices.stride, 0, 0);
    else
      require_range(field("devices/stride"), devices.stride, devices.block, most);
  }

  void check_modules_alone(std::size_t index, const PipelineStage& stage) {
    const auto check = [&](std::string_view name, std::int64_t degree) {
      const std::string field = stage_field(index, fmt::format("modules/{}", name));
      if (degree < 0 || degree > stage.mesh.tensor)
        refuse(field, fmt::format("{} is not in [0, tensor {}]", degree, stage.mesh.tensor));
      else if (degree > 0 && stage.mesh.tensor % degree != 0)
        refuse(field,
               fmt::format("tensor {} % {} = {}, must be 0", stage.mesh.tensor, degree,
                           stage.mesh.tensor % degree),
               fmt::format("0 (the stage's), or one of {}", divisors(stage.mesh.tensor)));
    };
    check("attention_tensor", stage.modules.attention_tensor);
    check("feed_forward_tensor", stage.modules.feed_forward_tensor);
    check("embedding_tensor", stage.modules.embedding_tensor);
    check("output_tensor", stage.modules.output_tensor);
  }

  void check_treatments_alone(std::size_t index, const PipelineStage& stage) {
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    require_range(field("zero/stage"), stage.zero.stage, 0, 3);
    check_offload(field("offload/optimizer"), stage, stage.offload.optimizer);
    check_offload(field("offload/parameters"), stage, stage.offload.parameters);
    check_offload(field("offload/activations"), stage, stage.offload.activations);
    if (stage.offload.delayed_update && stage.offload.optimizer.device == OffloadDevice::none)
      refuse(field("offload/delayed_update"),
             "an update can only be delayed where the optimizer is offloaded",
             "false, or offload the optimizer to cpu or nvme");
    for (const RecomputationRun& run : stage.recomputation)
      if (run.layers < 1 || run.layers > blocks_)
        refuse(field("recomputation"),
               fmt::format("a run of {} layers is not in [1, {}]", run.layers, blocks_));
  }

  void check_offload(const std::string& field, const PipelineStage& stage,
                     const OffloadTreatment& treatment) {
    require_range(field + "/eighths", treatment.eighths, 0, 8);
    if ((treatment.device == OffloadDevice::none) != (treatment.eighths == 0))
      refuse(field, fmt::format("{} eighths to device {}", treatment.eighths, name_of(treatment.device)),
             "0 eighths with none, 1 to 8 with cpu or nvme");
    const auto group = static_cast<std::size_t>(stage.device_group);
    if (treatment.device == OffloadDevice::nvme && group < cluster_.groups.size() &&
        cluster_.groups[group].node.nvme_bytes == 0)
      refuse(field + "/device", fmt::format("node {} has no NVMe storage", cluster_.groups[group].node.name),
             "cpu, or give the node nvme_bytes");
  }

  void check_schedule() {
    const std::string refusal =
        schedule_refusal(placement_.schedule, placement_.pipeline_ranks(), placement_.virtual_stages,
                         placement_.accumulation, placement_.micro_batch_group);
    if (!refusal.empty()) refuse("schedule", refusal);
    const bool there_and_back = placement_.schedule == ScheduleKind::zero_bubble_v ||
                                placement_.schedule == ScheduleKind::dual_pipe_v;
    const std::int64_t ranks = placement_.pipeline_ranks();
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const auto stage = static_cast<std::int64_t>(index);
      const bool backwards = there_and_back && stage / ranks % 2 == 1;
      const std::int64_t expected = backwards ? ranks - 1 - stage % ranks : stage % ranks;
      if (placement_.stages[index].pipeline_rank != expected)
        refuse(stage_field(index, "pipeline_rank"),
               fmt::format("{} holds stage {}, but schedule {} on {} pipeline ranks puts it on {}",
                           placement_.stages[index].pipeline_rank, index, name_of(placement_.schedule), ranks,
                           expected));
    }
  }

  void check_units() {
    const std::int64_t count = unit_count(blocks_);
    std::int64_t next = 0;
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const UnitRange& units = placement_.stages[index].units;
      if (units.first != next)
        refuse(stage_field(index, "units"),
               fmt::format("starts at unit {}, but the stages before end at {}", units.first, next));
      if (units.end <= units.first || units.end > count) {
        refuse(
            stage_field(index, "units"),
            fmt::format(
                "[{}, {}) is not a part of the model's {} units (2 × {} blocks + 2) with at least one unit",
                units.first, units.end, count, blocks_));
        return;
      }
      next = units.end;
    }
    if (next != count)
      refuse("stages", fmt::format("the stages hold {} units, the model has 2 × {} blocks + 2 = {}", next,
                                   blocks_, count));
  }

  void check_devices() {
    const std::int64_t ranks = placement_.pipeline_ranks();
    std::int64_t world = 0;
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      const std::int64_t mesh_ranks = multiply({stage.mesh.tensor, stage.mesh.context, stage.mesh.data});
      const std::int64_t devices = multiply({stage.devices.block, stage.devices.blocks});
      if (mesh_ranks != devices)
        refuse(stage_field(index, "devices"),
               fmt::format("tensor {} × context {} × data {} = {} ranks, but {} devices", stage.mesh.tensor,
                           stage.mesh.context, stage.mesh.data, mesh_ranks, devices));
      const auto holder =
          std::find_if(placement_.stages.begin(), placement_.stages.end(),
                       [&](const auto& other) { return other.pipeline_rank == stage.pipeline_rank; });
      if (static_cast<std::size_t>(holder - placement_.stages.begin()) == index)
        world = std::min(world + devices, std::numeric_limits<std::int32_t>::max() * std::int64_t{2});
      else if (holder->devices != stage.devices || holder->device_group != stage.device_group)
        refuse(stage_field(index, "devices"),
               fmt::format("pipeline rank {} has other devices in stage {}", stage.pipeline_rank,
                           holder - placement_.stages.begin()));
    }
    if (world > cluster_.devices())
      refuse("stages", fmt::format("the {} pipeline ranks use {} devices, the cluster has {}", ranks, world,
                                   cluster_.devices()));
    else if (violations_.empty())
      check_cover(world);
  }

  static std::int64_t multiply(std::initializer_list<std::int64_t> factors) {
    std::int64_t product = 1;
    for (std::int64_t factor : factors)
      product = std::min(product * factor, largest_degree * largest_degree / 2);
    return product;
  }

  /// Every rank of the world belongs to one pipeline rank. Marks them one by one.
  void check_cover(std::int64_t world) {
    std::vector<std::int64_t> owner(static_cast<std::size_t>(world), -1);
    for (std::size_t index = 0; index < placement_.stages.size(); ++index) {
      const PipelineStage& stage = placement_.stages[index];
      for (std::int64_t run = 0; run < stage.devices.blocks; ++run)
        for (std::int64_t offset = 0; offset < stage.devices.block; ++offset) {
          const std::int64_t rank = stage.devices.first + run * stage.devices.stride + offset;
          if (rank >= world)
            return refuse(stage_field(index, "devices"),
                          fmt::format("holds rank {}, but the stages together have {} ranks, 0 to {}", rank,
                                      world, world - 1));
          std::int64_t& holder = owner[static_cast<std::size_t>(rank)];
          if (holder != -1 && holder != stage.pipeline_rank)
            return refuse(stage_field(index, "devices"),
                          fmt::format("rank {} belongs to pipeline ranks {} and {}", rank, holder,
                                      stage.pipeline_rank));
          holder = stage.pipeline_rank;
        }
    }
  }

  void check_stage_with_model(std::size_t index) {
    const PipelineStage& stage = placement_.stages[index];
    check_batch(index, stage);
    check_sequence(index, stage);
    check_attention(index, stage);
    check_feed_forward(index, stage);
    check_experts(index, stage);
    const std::int64_t first_layer = std::max<std::int64_t>(stage.units.first - 1, 0) / 2;
    const std::int64_t end_layer = std::min(stage.units.end / 2, blocks_);
    const std::int64_t touched = std::max<std::int64_t>(end_layer - first_layer, 0);
    std::int64_t treated = 0;
    for (const RecomputationRun& run : stage.recomputation) treated += run.layers;
    if (!stage.recomputation.empty() && treated != touched)
      refuse(stage_field(index, "recomputation"),
             fmt::format("names {} layers, the stage's units [{}, {}) touch {}", treated, stage.units.first,
                         stage.units.end, touched));
  }

  void check_batch(std::size_t index, const PipelineStage& stage) {
    if (placement_.replica_shares.empty()) {
      const std::int64_t batch = multiply({placement_.micro_batch, placement_.accumulation, stage.mesh.data});
      if (batch != training_.global_batch)
        refuse(stage_field(index, "mesh/data"),
               fmt::format("micro_batch {} × accumulation {} × data {} = {}, must be global_batch {}",
                           placement_.micro_batch, placement_.accumulation, stage.mesh.data, batch,
                           training_.global_batch));
      return;
    }
    std::int64_t replicas = 0;
    for (const ReplicaShare& share : placement_.replica_shares) replicas += share.replicas;
    if (replicas != stage.mesh.data)
      refuse(stage_field(index, "mesh/data"),
             fmt::format("replica_shares hold {} replicas for data {}", replicas, stage.mesh.data));
  }

  void check_shares() {
    if (placement_.replica_shares.empty()) return;
    std::int64_t micro_batches = 0;
    for (std::size_t index = 0; index < placement_.replica_shares.size(); ++index) {
      const ReplicaShare& share = placement_.replica_shares[index];
      const std::string field = fmt::format("replica_shares/{}", index);
      require_range(field + "/replicas", share.replicas, 1, largest_degree);
      require_range(field + "/micro_batches", share.micro_batches, 1, largest_degree);
      require_range(field + "/device_group", share.device_group, 0,
                    static_cast<std::int64_t>(cluster_.groups.size()) - 1);
      micro_batches += multiply({share.replicas, share.micro_batches});
    }
    const std::int64_t batch = multiply({placement_.micro_batch, micro_batches});
    if (batch != training_.global_batch)
      refuse("replica_shares",
             fmt::format("micro_batch {} × {} micro-batches = {}, must be global_batch {}",
                         placement_.micro_batch, micro_batches, batch, training_.global_batch));
  }

  void check_sequence(std::size_t index, const PipelineStage& stage) {
    const std::int64_t length = training_.sequence_length;
    const StageMesh& mesh = stage.mesh;
    // The ring gives each rank one chunk from the front and one from the back, so that causal work is even.
    if (mesh.context > 1 && length % (2 * mesh.context) != 0)
      refuse(stage_field(index, "mesh/context"),
             fmt::format("sequence_length {} % (2 × context {}) = {}, must be 0", length, mesh.context,
                         length % (2 * mesh.context)));
    if (placement_.sequence_parallel && length % (mesh.context * mesh.tensor) != 0)
      refuse(stage_field(index, "mesh/tensor"),
             fmt::format("sequence parallel: sequence_length {} % (context {} × tensor {}) = {}, must be 0",
                         length, mesh.context, mesh.tensor, length % (mesh.context * mesh.tensor)));
    const std::int64_t tokens = multiply({placement_.micro_batch, length}) / mesh.context;
    if (stage.units.contains(2 * blocks_ + 1) &&
        stage.modules.output_mode == OutputLayerMode::token_parallel && tokens % mesh.tensor != 0)
      refuse(stage_field(index, "modules/output_mode"),
             fmt::format("token-parallel: {} tokens of a micro-batch % tensor {} = {}, must be 0", tokens,
                         mesh.tensor, tokens % mesh.tensor));
  }

  /// Whether the stage holds the attention (offset 1) or the FFN (offset 2) of any layer.
  bool holds_any(const PipelineStage& stage, std::int64_t offset) const {
    const std::int64_t after = std::max<std::int64_t>(stage.units.first - offset + 1, 0) / 2;
    return after < blocks_ && stage.units.contains(2 * after + offset);
  }

  void check_attention(std::size_t index, const PipelineStage& stage) {
    if (!holds_any(stage, 1)) return;
    const std::int64_t own = stage.modules.attention_tensor;
    const std::int64_t degree = own > 0 ? own : stage.mesh.tensor;
    const std::string field = stage_field(index, own > 0 ? "modules/attention_tensor" : "mesh/tensor");
    const std::int64_t heads = model_.attention.heads;
    if (heads % degree != 0)
      refuse(field, fmt::format("heads {} % tensor {} = {}, must be 0", heads, degree, heads % degree),
             fmt::format("one of {}", divisors(heads)));
    const std::int64_t kv_heads = model_.attention.kv_heads;
    if (model_.attention.latent || kv_heads < 1) return;
    if (kv_heads % degree != 0 && degree % kv_heads != 0)
      refuse(field,
             fmt::format("kv_heads {} % tensor {} = {} and tensor {} % kv_heads {} = {}, one must be 0",
                         kv_heads, degree, kv_heads % degree, degree, kv_heads, degree % kv_heads),
             fmt::format("a divisor or a multiple of {}", kv_heads));
  }

  void check_feed_forward(std::size_t index, const PipelineStage& stage) {
    if (!holds_any(stage, 2) || model_.feed_forward.hidden < 1) return;
    const std::int64_t own = stage.modules.feed_forward_tensor;
    const std::int64_t degree = own > 0 ? own : stage.mesh.tensor;
    const std::int64_t hidden = model_.feed_forward.hidden;
    if (hidden % degree != 0)
      refuse(stage_field(index, own > 0 ? "modules/feed_forward_tensor" : "mesh/tensor"),
             fmt::format("FFN hidden {} % tensor {} = {}, must be 0", hidden, degree, hidden % degree),
             fmt::format("one of {}", divisors(hidden)));
  }

  void check_experts(std::size_t index, const PipelineStage& stage) {
    const StageMesh& mesh = stage.mesh;
    const auto field = [&](std::string_view name) { return stage_field(index, name); };
    if (!model_.mixture) {
      if (mesh.expert != 1 || mesh.expert_tensor != 1)
        refuse(field("mesh/expert"),
               fmt::format("expert {} × expert_tensor {} for a model without experts", mesh.expert,
                           mesh.expert_tensor),
               "1 and 1");
      return;
    }
    const std::int64_t experts = model_.mixture->experts;
    if (experts % mesh.expert != 0)
      refuse(
          field("mesh/expert"),
          fmt::format("experts {} % expert {} = {}, must be 0", experts, mesh.expert, experts % mesh.expert),
          fmt::format("one of {}", divisors(experts)));
    const std::int64_t hidden = model_.mixture->expert_hidden;
    if (hidden % mesh.expert_tensor != 0)
      refuse(field("mesh/expert_tensor"),
             fmt::format("expert hidden {} % expert_tensor {} = {}, must be 0", hidden, mesh.expert_tensor,
                         hidden % mesh.expert_tensor),
             fmt::format("one of {}", divisors(hidden)));
    const std::int64_t ranks = multiply({mesh.tensor, mesh.context, mesh.data});
    const std::int64_t grid = multiply({mesh.expert, mesh.expert_tensor});
    if (ranks % grid != 0)
      refuse(field("mesh/expert"),
             fmt::format(
                 "tensor {} × context {} × data {} = {} % (expert {} × expert_tensor {}) = {}, must be 0",
                 mesh.tensor, mesh.context, mesh.data, ranks, mesh.expert, mesh.expert_tensor, ranks % grid));
  }

  const Placement& placement_;
  const ModelSpec& model_;
  const ClusterSpec& cluster_;
  const TrainingSpec& training_;
  std::int64_t blocks_;
  std::vector<PlacementViolation> violations_;
};

}  // namespace

std::vector<PlacementViolation> placement_violations(const Placement& placement, const ModelSpec& model,
                                                     const ClusterSpec& cluster,
                                                     const TrainingSpec& training) {
  return Checker(placement, model, cluster, training).run();
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
