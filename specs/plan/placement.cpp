#include "specs/plan/placement.h"

#include <algorithm>

#include <boost/container_hash/hash.hpp>

#include "specs/schedule/generate.h"

namespace specs {

std::string to_string(const AxisOrder& order) {
  std::string text;
  for (MeshAxis axis : order) {
    if (!text.empty()) text += '-';
    text += name_of(axis);
  }
  return text;
}

std::optional<AxisOrder> axis_order_from(std::string_view text) {
  AxisOrder order = default_axis_order;
  std::sort(order.begin(), order.end());
  do {
    if (to_string(order) == text) return order;
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

std::int64_t block_count(const ModelSpec& model) {
  return model.encoder_layers + model.layers + model.prediction_layers;
}

std::int64_t Placement::world_size() const {
  std::vector<std::int64_t> counted;
  std::int64_t ranks = 0;
  for (const PipelineStage& stage : stages) {
    if (std::find(counted.begin(), counted.end(), stage.pipeline_rank) != counted.end()) continue;
    counted.push_back(stage.pipeline_rank);
    ranks += stage.devices.size();
  }
  return ranks;
}

namespace {

/// Ranks whose pipeline coordinate is `pipeline_rank`, where axes fill consecutive ranks in `regular.order`.
DeviceSet devices_of(const RegularPlacement& regular, std::int64_t pipeline_rank) {
  std::int64_t inside = 1;
  std::int64_t outside = 1;
  bool passed_pipeline = false;
  for (MeshAxis axis : regular.order) {
    std::int64_t& product = passed_pipeline ? outside : inside;
    switch (axis) {
      case MeshAxis::tensor:
        product *= regular.tensor;
        break;
      case MeshAxis::context:
        product *= regular.context;
        break;
      case MeshAxis::data:
        product *= regular.data;
        break;
      case MeshAxis::pipeline:
        passed_pipeline = true;
        break;
    }
  }
  if (regular.pipeline == 1) return {.first = 0, .block = inside * outside, .stride = 0, .blocks = 1};
  return {.first = pipeline_rank * inside,
          .block = inside,
          .stride = outside == 1 ? 0 : inside * regular.pipeline,
          .blocks = outside};
}

/// Units of `stage` of `stages`: its layers, with the embedding before the first and the output layer after
/// the last.
UnitRange even_units(std::int64_t stage, std::int64_t stages, std::int64_t layers) {
  const std::int64_t base = layers / stages;
  const std::int64_t remainder = layers % stages;
  const auto layers_before = [&](std::int64_t index) {
    return index * base + std::clamp<std::int64_t>(index - 1, 0, remainder);
  };
  return {.first = stage == 0 ? 0 : attention_unit(layers_before(stage)),
          .end = stage + 1 == stages ? unit_count(layers) : attention_unit(layers_before(stage + 1))};
}

}  // namespace

Placement regular_placement(const RegularPlacement& regular, std::int64_t layers) {
  Placement placement{.micro_batch = regular.micro_batch,
                      .accumulation = regular.accumulation,
                      .schedule = regular.schedule,
                      .virtual_stages = regular.virtual_stages,
                      .micro_batch_group = regular.micro_batch_group,
                      .sequence_parallel = regular.sequence_parallel,
                      .local_steps = regular.local_steps,
                      .buckets = regular.buckets,
                      .stages = {},
                      .replica_shares = {}};
  const std::int64_t stages = regular.pipeline * regular.virtual_stages;
  const Schedule shape{.kind = regular.schedule,
                       .layout = layout_of(regular.schedule),
                       .pipeline_ranks = static_cast<std::int32_t>(regular.pipeline),
                       .virtual_stages = static_cast<std::int32_t>(regular.virtual_stages),
                       .rank_actions = {}};
  for (std::int64_t index = 0; index < stages; ++index) {
    PipelineStage stage;
    stage.pipeline_rank = shape.rank_of_stage(static_cast<std::int32_t>(index));
    stage.devices = devices_of(regular, stage.pipeline_rank);
    stage.mesh = {.tensor = regular.tensor,
                  .context = regular.context,
                  .data = regular.data,
                  .expert = regular.expert,
                  .expert_tensor = regular.expert_tensor,
                  .order = regular.order,
                  .context_mode = regular.context_mode};
    stage.units = even_units(index, stages, layers);
    stage.modules = regular.modules;
    const std::int64_t touched = layers_touched(stage.units, layers);
    if (regular.recomputation != Recomputation::none && touched > 0)
      stage.recomputation = {
          {.layers = touched, .mode = regular.recomputation, .modules = regular.recomputed_modules}};
    stage.zero = regular.zero;
    stage.offload = regular.offload;
    placement.stages.push_back(std::move(stage));
  }
  return placement;
}

std::optional<RegularPlacement> as_regular(const Placement& placement, std::int64_t layers) {
  if (placement.stages.empty() || placement.virtual_stages < 1) return std::nullopt;
  const PipelineStage& first = placement.stages.front();
  RecomputationRun recomputed;
  for (const PipelineStage& stage : placement.stages)
    if (!stage.recomputation.empty()) recomputed = stage.recomputation.front();
  const RegularPlacement regular{.tensor = first.mesh.tensor,
                                 .context = first.mesh.context,
                                 .pipeline = placement.pipeline_ranks(),
                                 .data = first.mesh.data,
                                 .expert = first.mesh.expert,
                                 .expert_tensor = first.mesh.expert_tensor,
                                 .order = first.mesh.order,
                                 .modules = first.modules,
                                 .micro_batch = placement.micro_batch,
                                 .accumulation = placement.accumulation,
                                 .schedule = placement.schedule,
                                 .virtual_stages = placement.virtual_stages,
                                 .micro_batch_group = placement.micro_batch_group,
                                 .sequence_parallel = placement.sequence_parallel,
                                 .recomputation = recomputed.mode,
                                 .recomputed_modules = recomputed.modules,
                                 .context_mode = first.mesh.context_mode,
                                 .buckets = placement.buckets,
                                 .zero = first.zero,
                                 .offload = first.offload,
                                 .local_steps = placement.local_steps};
  if (regular.pipeline < 1 || regular_placement(regular, layers) != placement) return std::nullopt;
  return regular;
}

std::int64_t layers_touched(const UnitRange& units, std::int64_t layers) {
  const std::int64_t first = std::max(units.first, attention_unit(0));
  const std::int64_t end = std::min(units.end, output_unit(layers));
  if (first >= end) return 0;
  const auto layer_of = [](std::int64_t unit) { return (unit - 1) / 2; };
  return layer_of(end - 1) - layer_of(first) + 1;
}

Recomputation recomputation_of(const PipelineStage& stage, std::int64_t touched_layer) {
  for (const RecomputationRun& run : stage.recomputation) {
    if (touched_layer < run.layers) return run.mode;
    touched_layer -= run.layers;
  }
  return Recomputation::none;
}

// Found by argument-dependent look-up from boost::hash; each must name every field of its type.
static std::size_t hash_value(const StageMesh& mesh) {
  std::size_t seed = boost::hash_range(mesh.order.begin(), mesh.order.end());
  for (std::int64_t degree : {mesh.tensor, mesh.context, mesh.data, mesh.expert, mesh.expert_tensor})
    boost::hash_combine(seed, degree);
  boost::hash_combine(seed, mesh.context_mode);
  return seed;
}

static std::size_t hash_value(const RecomputationRun& run) {
  std::size_t seed = boost::hash<std::int64_t>{}(run.layers);
  boost::hash_combine(seed, run.mode);
  boost::hash_combine(seed, run.modules);
  boost::hash_combine(seed, run.block_layers);
  return seed;
}

static std::size_t hash_value(const OffloadTreatment& treatment) {
  std::size_t seed = boost::hash<std::int64_t>{}(treatment.eighths);
  boost::hash_combine(seed, treatment.device);
  return seed;
}

static std::size_t hash_value(const ReplicaShare& share) {
  std::size_t seed = boost::hash<std::int64_t>{}(share.replicas);
  boost::hash_combine(seed, share.micro_batches);
  boost::hash_combine(seed, share.device_group);
  return seed;
}

static std::size_t hash_value(const PipelineStage& stage) {
  std::size_t seed = 0;
  for (std::int64_t number :
       {stage.pipeline_rank, stage.device_group, stage.devices.first, stage.devices.block,
        stage.devices.stride, stage.devices.blocks, stage.units.first, stage.units.end,
        stage.modules.attention_tensor, stage.modules.feed_forward_tensor, stage.modules.embedding_tensor,
        stage.modules.output_tensor, stage.zero.stage, stage.zero.shard_ranks, stage.zero.kept_units})
    boost::hash_combine(seed, number);
  boost::hash_combine(seed, stage.mesh);
  for (ReplicaWork work :
       {stage.modules.attention_work, stage.modules.feed_forward_work, stage.modules.embedding_work})
    boost::hash_combine(seed, work);
  boost::hash_combine(seed, stage.modules.output_mode);
  boost::hash_combine(seed, stage.recomputation);
  boost::hash_combine(seed, stage.zero.scope);
  boost::hash_combine(seed, stage.offload.optimizer);
  boost::hash_combine(seed, stage.offload.parameters);
  boost::hash_combine(seed, stage.offload.activations);
  boost::hash_combine(seed, stage.offload.delayed_update);
  return seed;
}

std::size_t hash_value(const Placement& placement) {
  std::size_t seed = 0;
  for (std::int64_t number :
       {placement.micro_batch, placement.accumulation, placement.virtual_stages, placement.micro_batch_group,
        placement.local_steps, placement.buckets.gradient_bucket_bytes, placement.buckets.gather_bucket_bytes,
        placement.buckets.minimum_message_bytes, placement.buckets.prefetch_units})
    boost::hash_combine(seed, number);
  boost::hash_combine(seed, placement.schedule);
  boost::hash_combine(seed, placement.sequence_parallel);
  boost::hash_combine(seed, placement.stages);
  boost::hash_combine(seed, placement.replica_shares);
  return seed;
}

}  // namespace specs
