#include "specs/language/section_keys.h"

namespace specs {

namespace {

constexpr std::int64_t most_layers = 2'000;  // the search prices each layer's cut; none published has 200
constexpr std::int64_t widest = 1'000'000;
constexpr std::int64_t most_heads = 65'536;
constexpr std::int64_t largest_vocabulary = 100'000'000;
constexpr std::int64_t most_experts = 65'536;

/// GPT-2 and GPT-3: layer norm, learned positions, biases everywhere, tied embeddings.
void apply_gpt_family(ModelSpec& model) {
  model.normalization = Normalization::layer_norm;
  model.norm_bias = true;
  model.position_encoding = PositionEncoding::learned;
  model.feed_forward.gated = false;
  model.feed_forward.activation = Activation::gelu_tanh;
  model.feed_forward.bias = true;
  model.attention.qkv_bias = true;
  model.attention.output_bias = true;
  model.tied_embeddings = true;
  model.vocabulary = 50257;
}

/// Llama: RMS norm, rotary positions, gated SiLU, no biases, untied embeddings.
void apply_llama_family(ModelSpec& model) {
  model.normalization = Normalization::rms_norm;
  model.norm_bias = false;
  model.position_encoding = PositionEncoding::rotary;
  model.feed_forward.gated = true;
  model.feed_forward.activation = Activation::silu;
  model.feed_forward.bias = false;
  model.attention.qkv_bias = false;
  model.attention.output_bias = false;
  model.tied_embeddings = false;
  model.vocabulary = 32000;
}

void visit_latent_attention(KeyVisitor& visitor, LatentAttention& latent) {
  const IntegerRange width{1, widest};
  visitor.integer({"query_rank", "rank of the query projection; 0: queries are projected directly"},
                  latent.query_rank, {0, widest});
  visitor.integer({"key_value_rank", "rank of the joint key and value projection"}, latent.key_value_rank,
                  width);
  visitor.integer({"rotary_head_dim", "part of a query or key head that carries the rotation"},
                  latent.rotary_head_dim, {0, widest});
  visitor.integer({"content_head_dim", "part of a query or key head that does not"}, latent.content_head_dim,
                  width);
  visitor.integer({"value_head_dim", "width of a value head"}, latent.value_head_dim, width);
}

void visit_mixture(KeyVisitor& visitor, MixtureSpec& mixture) {
  visitor.integer({"experts", "routed experts of a mixture layer", "needed"}, mixture.experts,
                  {1, most_experts});
  visitor.integer({"top_k", "experts a token is sent to", "2"}, mixture.top_k, {1, most_experts});
  visitor.integer({"expert_hidden", "inner width of one expert", "ffn_hidden"}, mixture.expert_hidden,
                  {1, widest});
  visitor.integer({"shared_experts", "experts that every token passes"}, mixture.shared_experts,
                  {0, most_experts});
  visitor.integer({"shared_expert_hidden", "inner width of all shared experts together",
                   "shared_experts · expert_hidden"},
                  mixture.shared_expert_hidden, {0, widest});
  visitor.flag({"shared_expert_gate", "a learned scalar gate on the shared experts"},
               mixture.shared_expert_gate);
  visitor.integer({"first_dense_layers", "layers at the bottom that stay dense"}, mixture.first_dense_layers,
                  {0, most_layers});
  visitor.integer({"layer_frequency", "every n-th layer after the first dense ones is a mixture"},
                  mixture.layer_frequency, {1, most_layers});
  visitor.flag({"router_bias", "a selection bias per expert that carries no gradient"}, mixture.router_bias);
  visitor.number({"capacity_factor", "tokens an expert accepts over the even share; 0: no token is dropped"},
                 mixture.capacity_factor, {0, 1000});
  visitor.number({"auxiliary_loss", "weight of the load-balancing loss"}, mixture.auxiliary_loss, {0, 1000});
}

void visit_rotary(KeyVisitor& visitor, RotarySpec& rotary) {
  visitor.number({"theta", "base of the frequencies"}, rotary.theta, positive);
  visitor.number({"fraction", "share of head_dim that is rotated"}, rotary.fraction, fraction);
  visitor.one_of({"scaling", "how positions beyond the trained ones are scaled; empty: not"}, rotary.scaling,
                 {"", "linear", "llama3"});
  visitor.number({"scaling_factor", "of the positions"}, rotary.scaling_factor, positive);
  visitor.number({"low_frequency_factor", "llama3 scaling"}, rotary.low_frequency_factor, positive);
  visitor.number({"high_frequency_factor", "llama3 scaling"}, rotary.high_frequency_factor, positive);
  visitor.integer({"original_positions", "llama3 scaling: positions before scaling"},
                  rotary.original_positions, {1, 1'000'000'000});
}

void visit_attention(KeyVisitor& visitor, AttentionSpec& attention) {
  visitor.integer({"heads", "attention heads", "needed without a preset"}, attention.heads, {1, most_heads});
  visitor.integer({"kv_heads", "key and value heads: heads for multi-head, 1 for multi-query", "heads"},
                  attention.kv_heads, {1, most_heads});
  visitor.integer({"head_dim", "width of one head; need not be hidden / heads", "hidden / heads"},
                  attention.head_dim, {1, widest});
  visitor.flag(
      {"qkv_bias", "a bias on the query, key and value projections", "true for gpt, false for llama"},
      attention.qkv_bias);
  visitor.flag({"attention_output_bias", "a bias on the attention's output projection",
                "true for gpt, false for llama"},
               attention.output_bias);
  visitor.flag({"qk_norm", "a norm on each query and key head"}, attention.qk_norm);
  visitor.integer({"sliding_window", "tokens a query sees; 0: all before it"}, attention.sliding_window,
                  {0, 1'000'000'000});
  visitor.integer({"sliding_every", "every n-th layer slides, the others see everything"},
                  attention.sliding_every, {1, most_layers});
  bool latent_given = attention.latent.has_value();
  LatentAttention latent = attention.latent.value_or(LatentAttention{});
  visitor.optional_table({"latent_attention", "multi-head latent attention (DeepSeek-V2 and V3)"},
                         latent_given, [&latent](KeyVisitor& keys) { visit_latent_attention(keys, latent); });
  if (latent_given) attention.latent = latent;
}

void visit_feed_forward(KeyVisitor& visitor, FeedForwardSpec& feed_forward) {
  visitor.integer({"ffn_hidden", "inner width of the dense FFN",
                   "4 · hidden; gated: 8/3 · hidden, rounded up to a multiple of 256"},
                  feed_forward.hidden, {1, widest});
  visitor.flag({"ffn_gated", "a gate projection beside the up projection", "false for gpt, true for llama"},
               feed_forward.gated);
  visitor.choice({"activation", "of the FFN", "gelu_tanh for gpt, silu for llama"}, feed_forward.activation);
  visitor.flag({"ffn_bias", "biases in the FFN", "true for gpt, false for llama"}, feed_forward.bias);
}

}  // namespace

ModelSpec starting_model() {
  ModelSpec model;
  apply_gpt_family(model);
  return model;
}

void visit_keys(KeyVisitor& visitor, ModelSpec& model) {
  visitor.text({"name", "what tables call the model", "the preset's name"}, model.name);
  visitor.imported_model({"import", "a Hugging Face config.json to start from, in place of a preset", "none"},
                         model);
  visitor.shorthand({"family", "sets norm, positions, activation, biases, tying and vocabulary", "gpt"},
                    {"gpt", "llama"}, [&model](const std::string& family) {
                      family == "gpt" ? apply_gpt_family(model) : apply_llama_family(model);
                    });
  visitor.integer({"layers", "decoder layers", "needed without a preset"}, model.layers, {1, most_layers});
  visitor.integer({"encoder_layers", "encoder-decoder models only"}, model.encoder_layers, {0, most_layers});
  visitor.integer({"hidden", "width of the residual stream", "needed without a preset"}, model.hidden,
                  {1, widest});
  visit_attention(visitor, model.attention);
  visit_feed_forward(visitor, model.feed_forward);

  visitor.integer({"vocabulary", "token ids", "50257 for gpt, 32000 for llama"}, model.vocabulary,
                  {2, largest_vocabulary});
  visitor.integer(
      {"vocabulary_multiple", "the table is padded to a multiple of this times the tensor degree", "128"},
      model.vocabulary_multiple, {1, largest_vocabulary});
  visitor.integer({"positions", "rows of a learned position table; buckets of relative positions",
                   "training.sequence_length with learned positions, else 0"},
                  model.positions, {0, 1'000'000'000});
  visitor.choice({"position_encoding", "of the tokens", "learned for gpt, rotary for llama"},
                 model.position_encoding);
  visitor.table({"rotary", "rotary position encoding"},
                [&model](KeyVisitor& keys) { visit_rotary(keys, model.rotary); });

  visitor.choice({"normalization", "of the residual stream", "layer_norm for gpt, rms_norm for llama"},
                 model.normalization);
  visitor.number({"norm_epsilon", "added to the variance"}, model.norm_epsilon,
                 {.minimum = 0, .maximum = 1, .open_minimum = true});
  visitor.flag({"norm_bias", "a bias in each layer norm", "true for gpt, false for llama"}, model.norm_bias);
  visitor.integer({"norms_per_layer", "1 where attention and FFN share one, 4 with norms behind both"},
                  model.norms_per_layer, {1, 4});
  visitor.flag({"embedding_norm", "a norm behind the embedding (BLOOM)"}, model.embedding_norm);
  visitor.flag({"final_norm", "a norm before the output layer"}, model.final_norm);
  visitor.flag(
      {"tied_embeddings", "the output layer uses the embedding table", "true for gpt, false for llama"},
      model.tied_embeddings);
  visitor.flag({"output_bias", "a bias on the output layer"}, model.output_bias);
  visitor.flag({"parallel_blocks", "attention and FFN read the same input"}, model.parallel_blocks);
  visitor.integer({"embedding_width", "width of the embedding where it is projected; 0: hidden"},
                  model.embedding_width, {0, widest});
  visitor.integer({"prediction_layers", "multi-token-prediction layers: trained, not counted"},
                  model.prediction_layers, {0, most_layers});

  bool mixture_given = model.mixture.has_value();
  MixtureSpec mixture = model.mixture.value_or(MixtureSpec{});
  visitor.optional_table({"mixture", "a mixture of experts in place of the dense FFN"}, mixture_given,
                         [&mixture](KeyVisitor& keys) { visit_mixture(keys, mixture); });
  if (mixture_given) model.mixture = mixture;
}

}  // namespace specs
