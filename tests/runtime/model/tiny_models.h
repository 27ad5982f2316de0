// Models, a single-process placement and data small enough to differentiate by hand.
#pragma once

#include <vector>

#include <ATen/ops/empty.h>

#include "runtime/model/counter_random.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace runtime {

inline constexpr std::int64_t length = 8;
inline constexpr std::int64_t sequences = 2;

inline specs::ModelSpec gpt() {
  specs::ModelSpec model;
  model.layers = 2;
  model.hidden = 16;
  model.vocabulary = 29;
  model.vocabulary_multiple = 8;
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = 4;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.feed_forward = {32, false, specs::Activation::gelu, true};
  model.positions = length;
  return model;
}

inline specs::ModelSpec llama() {
  specs::ModelSpec model = gpt();
  model.attention.kv_heads = 2;
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.feed_forward = {24, true, specs::Activation::silu, false};
  model.position_encoding = specs::PositionEncoding::rotary;
  model.rotary.scaling = "llama3";
  model.rotary.scaling_factor = 8;
  model.rotary.original_positions = 64;
  model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = false;
  model.tied_embeddings = false;
  return model;
}

inline TrainerSpec single_process(const specs::ModelSpec& model) {
  TrainerSpec spec;
  spec.model = model;
  spec.training.global_batch = sequences;
  spec.training.sequence_length = length;
  spec.training.precision = specs::Precision::fp64;
  spec.training.steps = 1;
  specs::RegularPlacement regular;
  regular.micro_batch = sequences;
  spec.placement = specs::regular_placement(regular, model.layers);
  spec.schedule =
      specs::lower(specs::generate_schedule(specs::ScheduleKind::one_forward_one_backward, 1, 1, 1));
  return spec;
}

inline std::vector<MicroBatch> batch(std::int64_t vocabulary) {
  MicroBatch batch;
  batch.tokens = at::empty({sequences, length}, at::kLong);
  batch.targets = at::empty({sequences, length}, at::kLong);
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    const RandomBlock bits = philox(3, 0, static_cast<std::uint64_t>(i));
    batch.tokens.data_ptr<std::int64_t>()[i] = bits[0] % static_cast<std::uint32_t>(vocabulary);
    batch.targets.data_ptr<std::int64_t>()[i] =
        i % 5 == 0 ? std::int64_t{-100} : std::int64_t{bits[1] % static_cast<std::uint32_t>(vocabulary)};
  }
  return {batch};
}

}  // namespace runtime
