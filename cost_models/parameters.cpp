#include "cost_models/parameters.h"

#include <algorithm>

namespace cost_models {
namespace {

using specs::ModelSpec;

constexpr std::int64_t default_vocabulary_multiple = 128;
constexpr std::int64_t default_relative_buckets = 32;  // T5's relative_attention_num_buckets

std::int64_t ceil_divide(std::int64_t numerator, std::int64_t denominator) {
  return (numerator + denominator - 1) / denominator;
}

std::int64_t norm_width(const ModelSpec& model) {
  const bool biased = model.normalization == specs::Normalization::layer_norm && model.norm_bias;
  return model.hidden * (biased ? 2 : 1);
}

std::int64_t attention_norms(const ModelSpec& model) { return model.norms_per_layer >= 4 ? 2 : 1; }
std::int64_t feed_forward_norms(const ModelSpec& model) {
  return model.norms_per_layer - attention_norms(model);
}

RankParameters replicated(std::int64_t count) { return {count, count, 0}; }
RankParameters sharded(std::int64_t count) { return {count, 0, 0}; }

// Projections of one plain attention, without its norms.
RankParameters plain_attention(const ModelSpec& model, std::int64_t tensor) {
  const specs::AttentionSpec& attention = model.attention;
  const std::int64_t query_width = attention.heads / tensor * attention.head_dim;
  const std::int64_t kv_width = kv_heads_per_rank(model, tensor) * attention.head_dim;
  RankParameters count = sharded(model.hidden * (query_width + 2 * kv_width) + query_width * model.hidden);
  if (attention.qkv_bias) count += sharded(query_width + 2 * kv_width);
  if (attention.output_bias) count += replicated(model.hidden);
  if (attention.qk_norm) count += replicated(2 * attention.head_dim);
  return count;
}

// The down projections and their norms are whole on every tensor rank; the up projections are cut by heads.
RankParameters latent_attention(const ModelSpec& model, std::int64_t tensor) {
  const specs::LatentAttention& latent = *model.attention.latent;
  const std::int64_t heads = model.attention.heads / tensor;
  const std::int64_t query_head = latent.rotary_head_dim + latent.content_head_dim;
  RankParameters count;
  if (latent.query_rank > 0) {
    count += replicated(model.hidden * latent.query_rank + latent.query_rank);
    count += sharded(latent.query_rank * heads * query_head);
  } else {
    count += sharded(model.hidden * heads * query_head);
  }
  count +=
      replicated(model.hidden * (latent.key_value_rank + latent.rotary_head_dim) + latent.key_value_rank);
  count += sharded(latent.key_value_rank * heads * (latent.content_head_dim + latent.value_head_dim));
  count += sharded(heads * latent.value_head_dim * model.hidden);
  return count;
}

// One FFN of inner width `width` on this rank, without norms.
RankParameters feed_forward_of_width(const ModelSpec& model, std::int64_t width) {
  const std::int64_t into = model.feed_forward.gated ? 2 : 1;
  RankParameters count = sharded((into + 1) * model.hidden * width);
  if (model.feed_forward.bias) {
    count += sharded(into * width);
    count += replicated(model.hidden);
  }
  return count;
}

std::int64_t table_rows(const ModelSpec& model, std::int64_t tensor, bool pad) {
  return pad ? padded_vocabulary(model, tensor) / tensor : ceil_divide(model.vocabulary, tensor);
}

std::int64_t table_width(const ModelSpec& model) {
  return model.embedding_width > 0 ? model.embedding_width : model.hidden;
}

std::int64_t relative_buckets(const ModelSpec& model) {
  if (model.position_encoding != specs::PositionEncoding::relative) return 0;
  return model.positions > 0 ? model.positions : default_relative_buckets;
}

}  // namespace

RankParameters& RankParameters::operator+=(const RankParameters& other) {
  dense += other.dense;
  replicated += other.replicated;
  expert += other.expert;
  partial += other.partial;
  return *this;
}

ShardDegrees shard_degrees(const ModelSpec& model, const specs::ModuleTreatments& modules,
                           std::int64_t tensor) {
  const auto treated = [tensor](std::int64_t degree) { return degree > 0 ? degree : tensor; };
  ShardDegrees degrees;
  degrees.attention_tensor = treated(modules.attention_tensor);
  degrees.feed_forward_tensor = treated(modules.feed_forward_tensor);
  degrees.output_tensor =
      modules.output_mode == specs::OutputLayerMode::token_parallel ? 1 : treated(modules.output_tensor);
  degrees.embedding_tensor =
      model.tied_embeddings ? degrees.output_tensor : treated(modules.embedding_tensor);
  return degrees;
}

std::int64_t padded_vocabulary(const ModelSpec& model, std::int64_t tensor) {
  const std::int64_t multiple =
      (model.vocabulary_multiple > 0 ? model.vocabulary_multiple : default_vocabulary_multiple) * tensor;
  return ceil_divide(model.vocabulary, multiple) * multiple;
}

std::int64_t mixture_layers(const ModelSpec& model, std::int64_t first, std::int64_t end) {
  if (!model.mixture) return 0;
  const std::int64_t frequency = std::max<std::int64_t>(1, model.mixture->layer_frequency);
  const auto before = [&](std::int64_t layer) {
    return std::max<std::int64_t>(0, layer - model.mixture->first_dense_layers) / frequency;
  };
  return before(end) - before(first);
}

std::int64_t kv_heads_per_rank(const ModelSpec& model, std::int64_t tensor) {
  return std::max<std::int64_t>(1, model.attention.kv_heads / tensor);
}

UnitKinds unit_kinds(const ModelSpec& model, const specs::UnitRange& units) {
  const std::int64_t blocks = specs::block_count(model);
  const std::int64_t decoder_end = model.encoder_layers + model.layers;
  const std::int64_t output = specs::output_unit(blocks);
  UnitKinds kinds;
  kinds.embedding = units.contains(specs::embedding_unit());
  kinds.output = units.contains(output);
  const std::int64_t first = std::max<std::int64_t>(units.first, specs::attention_unit(0));
  const std::int64_t end = std::min(units.end, output);
  if (end <= first) return kinds;
  // Attention units are odd, FFN units even: the blocks whose unit is here are [first, end) of each kind.
  const std::int64_t first_attention = first / 2, end_attention = end / 2;
  const std::int64_t first_ffn = (first - 1) / 2, end_ffn = (end - 1) / 2;
  const auto within = [](std::int64_t from, std::int64_t to, std::int64_t low, std::int64_t high) {
    return std::max<std::int64_t>(0, std::min(to, high) - std::max(from, low));
  };
  kinds.encoder_attention = within(first_attention, end_attention, 0, model.encoder_layers);
  kinds.attention = end_attention - first_attention - kinds.encoder_attention;
  kinds.prediction = within(first_attention, end_attention, decoder_end, blocks);
  const auto decoder_layer = [&](std::int64_t block) {
    return std::clamp<std::int64_t>(block - model.encoder_layers, 0, model.layers);
  };
  kinds.mixture = mixture_layers(model, decoder_layer(first_ffn), decoder_layer(end_ffn));
  if (model.mixture) kinds.mixture += within(first_ffn, end_ffn, decoder_end, blocks);
  kinds.feed_forward = end_ffn - first_ffn - kinds.mixture;
  return kinds;
}

RankParameters encoder_attention_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  RankParameters count = plain_attention(model, degrees.attention_tensor);
  count += replicated(norm_width(model));
  return count;
}

RankParameters attention_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  const std::int64_t tensor = degrees.attention_tensor;
  RankParameters count =
      model.attention.latent ? latent_attention(model, tensor) : plain_attention(model, tensor);
  count += replicated(attention_norms(model) * norm_width(model));
  if (model.encoder_layers > 0) {
    count += plain_attention(model, tensor);
    count += replicated(norm_width(model));
  }
  return count;
}

RankParameters feed_forward_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  RankParameters count =
      feed_forward_of_width(model, model.feed_forward.hidden / degrees.feed_forward_tensor);
  count += replicated(feed_forward_norms(model) * norm_width(model));
  return count;
}

RankParameters mixture_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  const specs::MixtureSpec& mixture = *model.mixture;
  RankParameters count = replicated(feed_forward_norms(model) * norm_width(model));
  count += replicated(model.hidden * mixture.experts);  // the router
  const RankParameters expert = feed_forward_of_width(model, mixture.expert_hidden / degrees.expert_tensor);
  count.expert = mixture.experts / degrees.expert * expert.dense;
  if (mixture.shared_expert_hidden > 0) {
    count += feed_forward_of_width(model, mixture.shared_expert_hidden / degrees.feed_forward_tensor);
    if (mixture.shared_expert_gate) count += replicated(model.hidden);
  }
  return count;
}

RankParameters embedding_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  RankParameters count =
      sharded(table_rows(model, degrees.embedding_tensor, degrees.pad_vocabulary) * table_width(model));
  if (model.embedding_width > 0) count += replicated(model.embedding_width * model.hidden);
  if (model.position_encoding == specs::PositionEncoding::learned)
    count += replicated(model.positions * model.hidden);
  if (model.embedding_norm) count += replicated(norm_width(model));
  const std::int64_t stacks = model.encoder_layers > 0 ? 2 : 1;
  count += sharded(stacks * relative_buckets(model) * model.attention.heads / degrees.attention_tensor);
  if (model.encoder_layers > 0) count += replicated(norm_width(model));
  return count;
}

RankParameters prediction_parameters(const ModelSpec& model) {
  return replicated(2 * model.hidden * model.hidden + 3 * norm_width(model));
}

RankParameters output_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  RankParameters count;
  const std::int64_t rows = table_rows(model, degrees.output_tensor, degrees.pad_vocabulary);
  if (model.final_norm) count += replicated(norm_width(model));
  if (model.embedding_width > 0) count += replicated(model.hidden * model.embedding_width);
  if (!model.tied_embeddings) count += sharded(rows * table_width(model));
  if (model.output_bias) count += sharded(rows);
  return count;
}

std::int64_t tied_table_parameters(const ModelSpec& model, const ShardDegrees& degrees) {
  return table_rows(model, degrees.output_tensor, degrees.pad_vocabulary) * table_width(model);
}

RankParameters parameters_of_units(const ModelSpec& model, const specs::UnitRange& units,
                                   const ShardDegrees& degrees) {
  const UnitKinds kinds = unit_kinds(model, units);
  RankParameters count;
  const auto add = [&count](const RankParameters& each, std::int64_t times) {
    count += {each.dense * times, each.replicated * times, each.expert * times};
  };
  if (kinds.encoder_attention > 0) add(encoder_attention_parameters(model, degrees), kinds.encoder_attention);
  add(attention_parameters(model, degrees), kinds.attention);
  add(feed_forward_parameters(model, degrees), kinds.feed_forward);
  if (kinds.mixture > 0) add(mixture_parameters(model, degrees), kinds.mixture);
  if (kinds.prediction > 0) add(prediction_parameters(model), kinds.prediction);
  if (kinds.embedding) add(embedding_parameters(model, degrees), 1);
  if (kinds.output) {
    add(output_parameters(model, degrees), 1);
    if (model.tied_embeddings && !kinds.embedding) count += sharded(tied_table_parameters(model, degrees));
  }
  return count;
}

std::int64_t total_parameters(const ModelSpec& model) {
  ModelSpec counted = model;
  counted.prediction_layers = 0;
  ShardDegrees whole;
  whole.pad_vocabulary = false;
  return parameters_of_units(counted, {0, specs::unit_count(specs::block_count(counted))}, whole).total();
}

std::int64_t active_parameters(const ModelSpec& model) {
  const std::int64_t total = total_parameters(model);
  if (!model.mixture) return total;
  const RankParameters layer = mixture_parameters(model, ShardDegrees{});
  const std::int64_t idle_experts = model.mixture->experts - model.mixture->top_k;
  return total -
         mixture_layers(model, 0, model.layers) * (layer.expert / model.mixture->experts) * idle_experts;
}

}  // namespace cost_models
