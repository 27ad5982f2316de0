#include "tests/numerics/training_case.h"

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

}  // namespace

std::string TrainingCase::name() const {
  std::string text = fmt::format("{} {} {} tp{} pp{} dp{} z{} mb{}x{}", name_of_model(model),
                                 specs::name_of(precision), specs::name_of(optimizer), tensor, pipeline, data,
                                 zero_stage, micro_batch, micro_batches());
  if (shard_ranks > 0) text += fmt::format(" within{}", shard_ranks);
  if (pipeline > 1 || virtual_stages > 1) text += fmt::format(" {}", specs::name_of(schedule));
  if (virtual_stages > 1) text += fmt::format(" v{}", virtual_stages);
  if (cut == Cut::sub_layer) text += " cut-in-layer";
  if (cut == Cut::front_heavy) text += " uneven";
  if (sequence_parallel) text += " sp";
  if (recomputation != specs::Recomputation::none)
    text += fmt::format(" recompute-{}", specs::name_of(recomputation));
  if (dropout > 0) text += " dropout";
  if (attention_dropout > 0) text += " attention-dropout";
  if (attention != specs::AttentionImplementation::flash)
    text += fmt::format(" {}", specs::name_of(attention));
  if (offload_eighths > 0) text += fmt::format(" offload-{}/8", offload_eighths);
  if (delayed_update) text += " delayed";
  if (spoiled_steps > 0) text += fmt::format(" overflow-on-{}", spoiled_rank);
  if (!overlap_reduction) text += " no-overlap";
  return text;
}

specs::ModelSpec model_of(const TrainingCase& training) {
  specs::ModelSpec model;
  model.name = name_of_model(training.model);
  model.layers = 4;
  model.hidden = 48;
  model.vocabulary = 61;  // padded to 64, 64, 72 and 64 rows on 1, 2, 3 and 4 ranks
  model.vocabulary_multiple = 8;
  model.attention.heads = 12;
  model.attention.head_dim = 4;
  if (training.model == TinyModel::gpt) {
    model.attention.kv_heads = 12;
    model.attention.qkv_bias = model.attention.output_bias = true;
    model.feed_forward = {192, false, specs::Activation::gelu_tanh, true};
    model.positions = TrainingCase::sequence_length;
    return model;
  }
  model.attention.kv_heads = training.model == TinyModel::llama ? 2 : 3;
  model.feed_forward = {96, true, specs::Activation::silu, false};
  model.position_encoding = specs::PositionEncoding::rotary;
  model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = false;
  model.tied_embeddings = false;
  return model;
}

specs::TrainingSpec training_of(const TrainingCase& training) {
  specs::TrainingSpec spec;
  spec.global_batch = TrainingCase::global_batch;
  spec.sequence_length = TrainingCase::sequence_length;
  spec.precision = training.precision;
  spec.gradient_precision =
      training.precision == specs::Precision::fp64 ? specs::Precision::fp64 : specs::Precision::fp32;
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
  regular.micro_batch = training.micro_batch;
  regular.accumulation = training.micro_batches();
  regular.schedule = training.schedule;
  regular.virtual_stages = training.virtual_stages;
  regular.sequence_parallel = training.sequence_parallel;
  regular.recomputation = training.recomputation;
  regular.zero.stage = training.zero_stage;
  if (training.offload_eighths > 0)
    regular.offload.optimizer = {specs::OffloadDevice::cpu, training.offload_eighths};
  regular.offload.delayed_update = training.delayed_update;
  regular.zero.shard_ranks = training.shard_ranks;
  // Several buckets even of these models.
  regular.buckets.gradient_bucket_bytes = regular.buckets.gather_bucket_bytes = 16384;
  regular.buckets.minimum_message_bytes = 1024;
  const std::int64_t layers = model_of(training).layers;
  specs::Placement placement = specs::regular_placement(regular, layers);
  const auto stages = static_cast<std::int64_t>(placement.stages.size());
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    specs::UnitRange& units = placement.stages[static_cast<std::size_t>(stage)].units;
    if (training.cut == Cut::sub_layer) units = sub_layer_cut(layers, stage, stages);
    if (training.cut == Cut::front_heavy) units = front_heavy_cut(layers, stage, stages);
  }
  return placement;
}

specs::Schedule schedule_of(const TrainingCase& training) {
  const specs::Schedule compute =
      specs::generate_schedule(training.schedule, static_cast<std::int32_t>(training.pipeline),
                               static_cast<std::int32_t>(training.virtual_stages),
                               static_cast<std::int32_t>(training.micro_batches()));
  specs::LoweringOptions options;
  options.tied_embeddings = model_of(training).tied_embeddings;
  options.zero_stage = training.zero_stage;
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
