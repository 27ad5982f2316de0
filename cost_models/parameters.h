// Exact parameter counts, by module, of a whole model and of what one rank holds of it.
#pragma once

#include <cstdint>

#include "specs/language/model.h"
#include "specs/plan/placement.h"

namespace cost_models {

/// How a rank's share of a module is cut.
struct ShardDegrees {
  std::int64_t attention_tensor = 1;
  std::int64_t feed_forward_tensor = 1;  ///< dense FFN and shared experts
  std::int64_t embedding_tensor = 1;
  std::int64_t output_tensor = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  bool pad_vocabulary = true;  ///< rows are padded as the runtime allocates them; false counts the true table
};

/// Of a stage with this tensor degree. A tied embedding lies as the output layer does.
ShardDegrees shard_degrees(const specs::ModelSpec& model, const specs::ModuleTreatments& modules,
                           std::int64_t tensor);

/// Parameters on one rank. `dense` and `expert` are reduced over different groups of ranks.
struct RankParameters {
  std::int64_t dense = 0;       ///< attention, dense FFN, shared experts, router, norms, tables
  std::int64_t replicated = 0;  ///< the part of `dense` that every rank of the tensor axis holds whole
  std::int64_t expert = 0;      ///< routed experts
  /// Σ parameters · (c − 1) / c of modules whose c copies on the tensor axis share the tokens: each gradient
  /// is also summed over the copies, which moves twice this many elements.
  std::int64_t partial = 0;
  std::int64_t total() const { return dense + expert; }
  RankParameters& operator+=(const RankParameters& other);
  bool operator==(const RankParameters&) const = default;
};

/// Rows of the embedding table on all ranks together: the vocabulary padded to a multiple of
/// vocabulary_multiple · tensor (128 · tensor where the model does not say).
std::int64_t padded_vocabulary(const specs::ModelSpec& model, std::int64_t tensor);

/// Mixture layers among the decoder layers [first, end).
std::int64_t mixture_layers(const specs::ModelSpec& model, std::int64_t first, std::int64_t end);

/// How many units of each kind a range holds. Blocks are encoder, decoder and prediction layers, in this
/// order.
struct UnitKinds {
  std::int64_t encoder_attention = 0;
  std::int64_t attention = 0;     ///< of decoder and prediction layers
  std::int64_t feed_forward = 0;  ///< dense
  std::int64_t mixture = 0;
  std::int64_t prediction = 0;  ///< prediction layers whose attention is here
  bool embedding = false;
  bool output = false;
  bool operator==(const UnitKinds&) const = default;
};

UnitKinds unit_kinds(const specs::ModelSpec& model, const specs::UnitRange& units);

/// Key-value heads on one rank: kv_heads / tensor, or one, replicated, where there are fewer heads than
/// ranks.
std::int64_t kv_heads_per_rank(const specs::ModelSpec& model, std::int64_t tensor);

/// Attention of one encoder layer with its norm.
RankParameters encoder_attention_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);
/// Attention of one decoder layer with its norms, in an encoder-decoder the cross-attention too.
RankParameters attention_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);
RankParameters feed_forward_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);
/// Router, routed and shared experts of one mixture layer with its norms.
RankParameters mixture_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);
/// What a prediction layer has beside attention and FFN: the projection that joins the hidden state with the
/// next token's embedding, and three norms.
RankParameters prediction_parameters(const specs::ModelSpec& model);
/// Token table, position table, embedding norm and projection; in an encoder-decoder the encoder's final norm
/// and the two tables of relative position biases.
RankParameters embedding_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);
/// Final norm, and the output table where it is not the embedding's.
RankParameters output_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);

/// The output layer's copy of a tied table, where the embedding is on another rank.
std::int64_t tied_table_parameters(const specs::ModelSpec& model, const ShardDegrees& degrees);

/// Of the units [first, end). A tied table is counted with the embedding, and again with the output layer
/// where the range does not hold both (each of the two stages then keeps a copy).
RankParameters parameters_of_units(const specs::ModelSpec& model, const specs::UnitRange& units,
                                   const ShardDegrees& degrees);

/// The published count: every trained parameter once, true vocabulary, prediction layers and router selection
/// biases left out.
std::int64_t total_parameters(const specs::ModelSpec& model);
/// The convention of the model cards: the whole model but only `top_k` of the routed experts in each layer.
std::int64_t active_parameters(const specs::ModelSpec& model);

}  // namespace cost_models
