#include "tests/numerics/training_case.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace runtime::numerics {

namespace {

const char* name_of_model(TinyModel model) {
  switch (model) {
    case TinyModel::gpt:
      return "gpt";
    case TinyModel::llama:
      return "llama";
    case TinyModel::llama_thirds:
      return "llama-kv3";
  }
  return "?";
}

specs::UnitRange sub_layer_cut(std::int64_t layers, std::int64_t stage, std::int64_t stages) {
  // Odd boundaries inside the chain of units stand between an attention and its feed-forward network.
  const auto boundary = [&](std::int64_t index) {
    if (index == 0) return std::int64_t{0};
    if (index == stages) return specs::unit_count(layers);
    return specs::feed_forward_unit(index * layers / stages > 0 ? index * layers / stages - 1 : 0);
  };
  return {boundary(stage), boundary(stage + 1)};
}

specs::UnitRange front_heavy_cut(std::int64_t layers, std::int64_t stage, std::int64_t stages) {
  const auto boundary = [&](std::int64_t index) {
    if (index == 0) return std::int64_t{0};
    if (index == stages) return specs::unit_count(layers);
    return specs::attention_unit(layers - (stages - index));
  };
  return {boundary(stage), boundary(stage + 1)};
}

/// Of a stage that touches `layers` layers.
std::vector<specs::RecomputationRun> recomputation_runs(const TrainingCase& training, std::int64_t layers) {
  if (training.recomputation == specs::Recomputation::none || layers == 0) return {};
  specs::RecomputationRun run{.layers = layers, .mode = training.recomputation};
  if (training.recomputed_layers == RecomputedLayers::in_pairs) run.block_layers = 2;
  if (training.recomputed_layers != RecomputedLayers::first_half || layers == 1) return {run};
  run.layers = (layers + 1) / 2;
  return {run, {.layers = layers - run.layers}};
}

}  // namespace

std::int64_t TrainingCase::layers() const {
  if (fixed_layers > 0) return fixed_layers;
  return std::max<std::int64_t>(stages() + (cut == Cut::front_heavy ? 1 : 0), 3);
}

std::string TrainingCase::name() const {
  std::string text = fmt::format("{}{} {} {} tp{} pp{} dp{} z{} {}x{}", name_of_model(model),
                                 tied ? "" : "-untied", specs::name_of(precision), specs::name_of(optimizer),
                                 tensor, pipeline, data, zero.stage, micro_batches, micro_batch());
  const auto add = [&text](bool condition, const std::string& word) {
    if (condition) text += " " + word;
  };
  add(zero.scope != specs::ShardScope::world, fmt::format("shards-of-{}", zero.shard_ranks));
  add(zero.kept_units > 0, fmt::format("kept{}", zero.kept_units));
  add(buckets.prefetch_units != 1, fmt::format("prefetch{}", buckets.prefetch_units));
  add(pipeline > 1 || virtual_stages > 1, std::string(specs::name_of(schedule)));
  add(virtual_stages > 1, fmt::format("v{}", virtual_stages));
  add(order != specs::default_axis_order, specs::to_string(order));
  add(cut == Cut::sub_layer, "cut-in-layer");
  add(cut == Cut::front_heavy, "uneven");
  add(sequence_parallel, "sp");
  add(output_mode != specs::OutputLayerMode::vocabulary_parallel, "token-parallel");
  add(recomputation != specs::Recomputation::none,
      fmt::format("recompute-{}", specs::name_of(recomputation)));
  add(recomputed_layers == RecomputedLayers::first_half, "of-half");
  add(recomputed_layers == RecomputedLayers::in_pairs, "in-pairs");
  const auto offloaded = [&](const specs::OffloadTreatment& part, std::string_view what) {
    add(part.device != specs::OffloadDevice::none,
        fmt::format("{}-on-{}-{}/8", what, specs::name_of(part.device), part.eighths));
  };
  offloaded(offload.optimizer, "optimizer");
  offloaded(offload.parameters, "parameters");
  offloaded(offload.activations, "activations");
  add(offload.delayed_update, "delayed");
  add(buckets.gradient_bucket_bytes != 65536, fmt::format("bucket{}", buckets.gradient_bucket_bytes));
  add(dropout > 0, "dropout");
  add(attention_dropout > 0, "attention-dropout");
  add(attention != specs::AttentionImplementation::flash, std::string(specs::name_of(attention)));
  add(gradient_clip == 0, "unclipped");
  add(learnable, "learnable");
  add(spoiled_steps > 0, fmt::format("overflow-on-{}", spoiled_rank));
  add(!overlap_reduction, "no-overlap");
  add(debug_synchronise, "debug-sync");
  add(gradient_precision != specs::Precision::fp32,
      fmt::format("gradients-{}", specs::name_of(gradient_precision)));
  return text;
}

specs::ModelSpec model_of(const TrainingCase& training) {
  specs::ModelSpec model;
  model.name = name_of_model(training.model);
  model.layers = training.layers();
  model.hidden = 24;
  model.vocabulary =
      TrainingCase::vocabulary;  // padded to 56, 64, 72, 64 and 64 rows on 1, 2, 3, 4 and 8 ranks
  model.vocabulary_multiple = 8;
  model.attention.heads = 24;
  model.attention.head_dim = 4;
  model.tied_embeddings = training.tied;
  if (training.model == TinyModel::gpt) {
    model.attention.kv_heads = 24;
    model.attention.qkv_bias = model.attention.output_bias = true;
    model.feed_forward = {48, false, specs::Activation::gelu_tanh, true};
    model.positions = training.sequence_length;
    return model;
  }
  model.attention.kv_heads = training.model == TinyModel::llama ? 2 : 3;
  model.feed_forward = {72, true, specs::Activation::silu, false};
  model.position_encoding = specs::PositionEncoding::rotary;
  model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = false;
  return model;
}

specs::TrainingSpec training_of(const TrainingCase& training) {
  specs::TrainingSpec spec;
  spec.stack = "dsrun";
  spec.global_batch = TrainingCase::global_batch;
  spec.sequence_length = training.sequence_length;
  spec.precision = training.precision;
  spec.gradient_precision =
      training.precision == specs::Precision::fp64 ? specs::Precision::fp64 : training.gradient_precision;
  spec.reduction_precision = spec.gradient_precision;
  if (training.precision == specs::Precision::fp64) spec.optimizer_state_precision = specs::Precision::fp64;
  spec.optimizer.type = training.optimizer;
  spec.optimizer.learning_rate = training.optimizer == specs::OptimizerKind::sgd ? 0.1 : 1e-3;
  spec.schedule.warmup_steps = training.warmup_steps;
  spec.loss_scaling.initial_scale = training.initial_loss_scale;
  spec.loss_scaling.window = training.loss_scale_window;
  spec.schedule.decay = specs::LearningRateDecay::cosine;
  spec.steps = 100;
  spec.gradient_clip = training.gradient_clip;
  spec.dropout = training.dropout;
  spec.attention_dropout = training.attention_dropout;
  spec.attention = training.attention;
  return spec;
}

specs::Placement placement_of(const TrainingCase& training) {
  specs::RegularPlacement regular;
  regular.tensor = training.tensor;
  regular.pipeline = training.pipeline;
  regular.data = training.data;
  regular.order = training.order;
  regular.micro_batch = training.micro_batch();
  regular.accumulation = training.micro_batches;
  regular.schedule = training.schedule;
  regular.virtual_stages = training.virtual_stages;
  regular.sequence_parallel = training.sequence_parallel;
  regular.zero = training.zero;
  regular.offload = training.offload;
  regular.buckets = training.buckets;
  const std::int64_t layers = training.layers();
  specs::Placement placement = specs::regular_placement(regular, layers);
  const auto stages = static_cast<std::int64_t>(placement.stages.size());
  for (std::int64_t index = 0; index < stages; ++index) {
    specs::PipelineStage& stage = placement.stages[static_cast<std::size_t>(index)];
    if (training.cut == Cut::sub_layer) stage.units = sub_layer_cut(layers, index, stages);
    if (training.cut == Cut::front_heavy) stage.units = front_heavy_cut(layers, index, stages);
    stage.recomputation = recomputation_runs(training, specs::layers_touched(stage.units, layers));
    if (training.output_mode == specs::OutputLayerMode::token_parallel) {
      stage.modules.output_mode = training.output_mode;
      stage.modules.output_tensor = 1;
    }
  }
  return placement;
}

specs::Schedule schedule_of(const TrainingCase& training) {
  const specs::Schedule compute = specs::generate_schedule(
      training.schedule, static_cast<std::int32_t>(training.pipeline),
      static_cast<std::int32_t>(training.virtual_stages), static_cast<std::int32_t>(training.micro_batches));
  specs::LoweringOptions options;
  options.tied_embeddings = training.tied;
  options.zero_stage = training.zero.stage;
  return specs::lower(compute, options);
}

static_assert(std::is_trivially_copyable_v<TrainingCase>);

std::string to_bytes(const TrainingCase& training) {
  return {reinterpret_cast<const char*>(&training), sizeof training};
}

TrainingCase case_from_bytes(const std::string& bytes) {
  if (bytes.size() != sizeof(TrainingCase)) throw std::runtime_error("not a training case");
  TrainingCase training;
  std::memcpy(&training, bytes.data(), sizeof training);
  return training;
}

}  // namespace runtime::numerics
