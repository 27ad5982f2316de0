// The GPT that the runtime's benchmarks train; python_training.py builds the same in PyTorch.
#pragma once

#include <cstdint>

#include "specs/language/model.h"

namespace bench {

/// Heads of 64, a feed-forward network four times as wide, 8,192 words. hidden 512 and 6 layers: 25 M
/// parameters.
inline specs::ModelSpec gpt(std::int64_t hidden, std::int64_t layers, std::int64_t length, bool tied = true) {
  specs::ModelSpec model;
  model.layers = layers;
  model.hidden = hidden;
  model.vocabulary = 8192;
  model.attention.head_dim = 64;
  model.attention.heads = model.attention.kv_heads = hidden / model.attention.head_dim;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.feed_forward = {4 * hidden, false, specs::Activation::gelu_tanh, true};
  model.positions = length;
  model.tied_embeddings = tied;
  return model;
}

}  // namespace bench
