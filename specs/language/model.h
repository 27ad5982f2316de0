// A transformer, described by the sizes that fix its parameters, FLOPs and bytes exactly.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "specs/diagnostics/enum_names.h"

namespace specs {

enum class PositionEncoding : std::uint8_t { none, learned, rotary, alibi, relative };

template <>
struct EnumNames<PositionEncoding> {
  static constexpr std::array<std::pair<PositionEncoding, std::string_view>, 5> names{{
      {PositionEncoding::none, "none"},
      {PositionEncoding::learned, "learned"},
      {PositionEncoding::rotary, "rotary"},
      {PositionEncoding::alibi, "alibi"},
      {PositionEncoding::relative, "relative"},
  }};
};

enum class Normalization : std::uint8_t { layer_norm, rms_norm };

template <>
struct EnumNames<Normalization> {
  static constexpr std::array<std::pair<Normalization, std::string_view>, 2> names{{
      {Normalization::layer_norm, "layer_norm"},
      {Normalization::rms_norm, "rms_norm"},
  }};
};

enum class Activation : std::uint8_t { gelu, gelu_tanh, relu, squared_relu, silu };

template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::pair<Activation, std::string_view>, 5> names{{
      {Activation::gelu, "gelu"},
      {Activation::gelu_tanh, "gelu_tanh"},
      {Activation::relu, "relu"},
      {Activation::squared_relu, "squared_relu"},
      {Activation::silu, "silu"},
  }};
};

/// Multi-head latent attention (DeepSeek-V2/V3): low-rank projections of queries and of keys with values.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are projected directly
  std::int64_t key_value_rank = 512;
  std::int64_t rotary_head_dim = 64;    ///< the part of a query/key head that carries the rotation
  std::int64_t content_head_dim = 128;  ///< the part that does not
  std::int64_t value_head_dim = 128;
  bool operator==(const LatentAttention&) const = default;
};

struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< = heads for multi-head, 1 for multi-query; unused with `latent`
  std::int64_t head_dim = 0;  ///< need not be hidden / heads
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;             ///< a norm on each query and key head
  std::int64_t sliding_window = 0;  ///< 0: full causal attention
  std::int64_t sliding_every = 1;   ///< every n-th layer slides, the others see everything (1: all)
  std::optional<LatentAttention> latent;
  bool operator==(const AttentionSpec&) const = default;
};

struct FeedForwardSpec {
  std::int64_t hidden = 0;  ///< inner width of the dense FFN
  bool gated = false;
  Activation activation = Activation::gelu;
  bool bias = false;
  bool operator==(const FeedForwardSpec&) const = default;
};

struct MixtureSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t expert_hidden = 0;
  std::int64_t shared_experts = 0;        ///< always active
  std::int64_t shared_expert_hidden = 0;  ///< inner width of all shared experts together
  bool shared_expert_gate = false;        ///< a learned scalar gate on the shared experts (Qwen2-MoE)
  std::int64_t first_dense_layers = 0;
  std::int64_t layer_frequency = 1;  ///< every n-th layer after the first dense ones is a mixture
  bool router_bias = false;          ///< a selection bias per expert, not a gradient parameter (DeepSeek-V3)
  double capacity_factor = 0;        ///< 0: dropless
  double auxiliary_loss = 0;
  bool operator==(const MixtureSpec&) const = default;
};

struct RotarySpec {
  double theta = 10000;
  double fraction = 1;  ///< share of head_dim that is rotated
  std::string scaling;  ///< empty, "linear", "llama3"
  double scaling_factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::int64_t original_positions = 8192;
  bool operator==(const RotarySpec&) const = default;
};

struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;          ///< decoder layers
  std::int64_t encoder_layers = 0;  ///< encoder-decoder models only
  std::int64_t hidden = 0;
  AttentionSpec attention;
  FeedForwardSpec feed_forward;
  std::optional<MixtureSpec> mixture;
  std::int64_t vocabulary = 0;
  std::int64_t vocabulary_multiple = 0;  ///< pad the table to this times the tensor degree; 0: 128
  std::int64_t positions = 0;            ///< rows of a learned position table
  PositionEncoding position_encoding = PositionEncoding::learned;
  RotarySpec rotary;
  Normalization normalization = Normalization::layer_norm;
  double norm_epsilon = 1e-5;
  bool norm_bias = true;             ///< layer_norm only
  std::int64_t norms_per_layer = 2;  ///< 1 with shared parallel attention, 4 with Gemma's sandwich
  bool embedding_norm = false;       ///< BLOOM
  bool final_norm = true;
  bool tied_embeddings = true;
  bool output_bias = false;            ///< a bias on the output layer (GPT-J)
  bool parallel_blocks = false;        ///< attention and FFN read the same input (GPT-J, NeoX, Falcon)
  std::int64_t embedding_width = 0;    ///< 0: hidden; else projected to it and back (OPT-350m)
  std::int64_t prediction_layers = 0;  ///< multi-token-prediction layers, trained but not counted
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace specs
