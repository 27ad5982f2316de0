#include "specs/interchange/hugging_face_families.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace specs {

namespace {

Activation activation_of(JsonConfig& config, JsonConfig::Names names, const char* fallback) {
  const std::string name = config.text(names, fallback);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "relu") return Activation::relu;
  if (name == "relu2") return Activation::squared_relu;
  if (name == "gelu") return Activation::gelu;
  return Activation::gelu_tanh;  // gelu_new, gelu_fast, gelu_pytorch_tanh
}

void read_rotary(JsonConfig& config, ModelSpec& model) {
  model.position_encoding = PositionEncoding::rotary;
  model.positions = 0;
  model.rotary.theta = config.number({"rope_theta"}, 10000);
  const auto scaling = config.object().find("rope_scaling");
  if (scaling == config.object().end() || !scaling->is_object()) return;
  const auto number = [&scaling](const char* key, double fallback) {
    const auto found = scaling->find(key);
    return found != scaling->end() && found->is_number() ? found->get<double>() : fallback;
  };
  std::string type;
  for (const char* key : {"rope_type", "type"})
    if (type.empty() && scaling->contains(key) && (*scaling)[key].is_string()) type = (*scaling)[key];
  if (type != "llama3" && type != "linear") {
    if (!type.empty() && type != "default")
      config.note("rope_scaling", fmt::format("rope_scaling \"{}\" is not modelled; it costs nothing", type));
    return;
  }
  model.rotary.scaling = type;
  model.rotary.scaling_factor = number("factor", 1);
  model.rotary.low_frequency_factor = number("low_freq_factor", 1);
  model.rotary.high_frequency_factor = number("high_freq_factor", 4);
  model.rotary.original_positions =
      static_cast<std::int64_t>(number("original_max_position_embeddings", 8192));
}

/// Class defaults of a family around Llama.
struct Defaults {
  std::int64_t vocabulary;
  std::int64_t hidden;
  std::int64_t ffn_hidden;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t kv_heads;  ///< 0: as heads
  std::int64_t head_dim;  ///< 0: hidden / heads
  bool tied = false;
  const char* activation = "silu";
};

/// RMS norm, rotary positions, a gated FFN, grouped key and value heads.
void read_llama_like(JsonConfig& config, ModelSpec& model, const Defaults& defaults) {
  model.vocabulary = config.integer({"vocab_size"}, defaults.vocabulary, 2);
  model.hidden = config.integer({"hidden_size"}, defaults.hidden);
  model.layers = config.integer({"num_hidden_layers"}, defaults.layers);
  model.feed_forward.hidden = config.integer({"intermediate_size"}, defaults.ffn_hidden);
  model.attention.heads = config.integer({"num_attention_heads"}, defaults.heads);
  const bool kv_given = config.has("num_key_value_heads");
  model.attention.kv_heads = model.attention.heads;
  if (kv_given || defaults.kv_heads > 0)
    model.attention.kv_heads = config.integer({"num_key_value_heads"}, defaults.kv_heads);
  if (config.has("head_dim") || defaults.head_dim > 0)
    model.attention.head_dim = config.integer({"head_dim"}, defaults.head_dim);
  model.feed_forward.gated = true;
  model.feed_forward.activation =
      activation_of(config, {"hidden_act", "hidden_activation"}, defaults.activation);
  model.feed_forward.bias = config.flag({"mlp_bias"}, false);
  model.attention.qkv_bias = model.attention.output_bias = config.flag({"attention_bias"}, false);
  model.normalization = Normalization::rms_norm;
  model.norm_bias = false;
  model.norm_epsilon = config.number({"rms_norm_eps"}, 1e-6);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, defaults.tied);
  read_rotary(config, model);
}

void read_llama(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {32000, 4096, 11008, 32, 32, 0, 0});
}

void read_mistral(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {32000, 4096, 14336, 32, 32, 8, 0});
  model.attention.sliding_window =
      config.has("sliding_window") ? config.integer({"sliding_window"}, 0, 0) : 0;
}

void read_mixtral(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {32000, 4096, 14336, 32, 32, 8, 0});
  MixtureSpec& mixture = model.mixture.emplace();
  mixture.experts = config.integer({"num_local_experts"}, 8);
  mixture.top_k = config.integer({"num_experts_per_tok"}, 2);
  mixture.expert_hidden = model.feed_forward.hidden;
  mixture.auxiliary_loss = config.number({"router_aux_loss_coef"}, 0.001);
}

void read_phi3(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {32064, 3072, 8192, 32, 32, 0, 0});
}

void read_qwen2(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {151936, 4096, 22016, 32, 32, 32, 0});
  model.attention.qkv_bias = true;
  model.attention.output_bias = false;
}

void read_qwen3(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {151936, 4096, 22016, 32, 32, 32, 128});
  model.attention.qk_norm = true;
}

/// Which layers of a Qwen mixture stay dense: a step, and a list of which only the first layers can be held.
void read_qwen_sparsity(JsonConfig& config, MixtureSpec& mixture) {
  mixture.layer_frequency = config.integer({"decoder_sparse_step"}, 1);
  const auto dense = config.object().find("mlp_only_layers");
  if (dense == config.object().end() || !dense->is_array()) return;
  for (const auto& layer : *dense) {
    if (layer.is_number_integer() && layer.get<std::int64_t>() == mixture.first_dense_layers)
      ++mixture.first_dense_layers;
    else
      return config.error("mlp_only_layers", "mlp_only_layers: only the first layers can be dense ones");
  }
}

void read_qwen2_moe(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {151936, 2048, 5632, 24, 16, 16, 0});
  model.attention.qkv_bias = config.flag({"qkv_bias"}, true);
  model.attention.output_bias = false;
  MixtureSpec& mixture = model.mixture.emplace();
  mixture.experts = config.integer({"num_experts"}, 60);
  mixture.top_k = config.integer({"num_experts_per_tok"}, 4);
  mixture.expert_hidden = config.integer({"moe_intermediate_size"}, 1408);
  mixture.shared_experts = 1;
  mixture.shared_expert_hidden = config.integer({"shared_expert_intermediate_size"}, 5632);
  mixture.shared_expert_gate = true;
  mixture.auxiliary_loss = config.number({"router_aux_loss_coef"}, 0.001);
  read_qwen_sparsity(config, mixture);
}

void read_qwen3_moe(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {151936, 2048, 6144, 24, 32, 4, 0});
  model.attention.qk_norm = true;
  MixtureSpec& mixture = model.mixture.emplace();
  mixture.experts = config.integer({"num_experts"}, 128);
  mixture.top_k = config.integer({"num_experts_per_tok"}, 8);
  mixture.expert_hidden = config.integer({"moe_intermediate_size"}, 768);
  mixture.auxiliary_loss = config.number({"router_aux_loss_coef"}, 0.001);
  read_qwen_sparsity(config, mixture);
}

void read_gemma(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {256000, 3072, 24576, 28, 16, 16, 256, true, "gelu_pytorch_tanh"});
}

void read_gemma2(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {256000, 2304, 9216, 26, 8, 4, 256, true, "gelu_pytorch_tanh"});
  model.norms_per_layer = 4;
  model.attention.sliding_window =
      config.has("sliding_window") ? config.integer({"sliding_window"}, 4096, 0) : 4096;
  model.attention.sliding_every = 2;
}

void read_gemma3(JsonConfig& config, ModelSpec& model) {
  read_llama_like(config, model, {262208, 2304, 9216, 26, 8, 4, 256, true, "gelu_pytorch_tanh"});
  model.norms_per_layer = 4;
  model.attention.qk_norm = true;
  if (config.has("sliding_window"))
    config.note("sliding_window", "sliding windows in five of six layers are taken as full attention");
}

void read_deepseek(JsonConfig& config, ModelSpec& model, bool version_3) {
  const Defaults defaults =
      version_3 ? Defaults{129280, 7168, 18432, 61, 128, 0, 0} : Defaults{102400, 4096, 11008, 30, 32, 0, 0};
  read_llama_like(config, model, defaults);
  model.attention.head_dim = 0;
  model.attention.kv_heads = model.attention.heads;  // a latent attention has none of its own
  LatentAttention& latent = model.attention.latent.emplace();
  const bool direct = config.object().contains("q_lora_rank") && !config.has("q_lora_rank");  // null
  latent.query_rank = direct ? 0 : config.integer({"q_lora_rank"}, 1536);
  latent.key_value_rank = config.integer({"kv_lora_rank"}, 512);
  latent.rotary_head_dim = config.integer({"qk_rope_head_dim"}, 64);
  latent.content_head_dim = config.integer({"qk_nope_head_dim"}, 128);
  latent.value_head_dim = config.integer({"v_head_dim"}, 128);
  model.prediction_layers =
      config.has("num_nextn_predict_layers") ? config.integer({"num_nextn_predict_layers"}, 0, 0) : 0;
  if (!version_3 && !config.has("n_routed_experts")) return;
  MixtureSpec& mixture = model.mixture.emplace();
  mixture.experts = config.integer({"n_routed_experts"}, 256);
  mixture.top_k = config.integer({"num_experts_per_tok"}, 8);
  mixture.expert_hidden = config.integer({"moe_intermediate_size"}, version_3 ? 2048 : 1407);
  mixture.shared_experts =
      config.has("n_shared_experts") || version_3 ? config.integer({"n_shared_experts"}, 1, 0) : 0;
  mixture.shared_expert_hidden = mixture.shared_experts * mixture.expert_hidden;
  mixture.first_dense_layers = config.integer({"first_k_dense_replace"}, version_3 ? 3 : 0, 0);
  mixture.layer_frequency = config.integer({"moe_layer_freq"}, 1);
  mixture.router_bias = version_3;
  if (mixture.layer_frequency > 1 && mixture.first_dense_layers > 0)
    config.error("moe_layer_freq", "moe_layer_freq above 1 beside first_k_dense_replace is not modelled");
}

void read_deepseek_v2(JsonConfig& config, ModelSpec& model) { read_deepseek(config, model, false); }
void read_deepseek_v3(JsonConfig& config, ModelSpec& model) { read_deepseek(config, model, true); }

/// Layer norm with biases, an ungated FFN of four times the width, biases everywhere.
void start_gpt_like(ModelSpec& model) {
  model.normalization = Normalization::layer_norm;
  model.norm_bias = true;
  model.feed_forward.gated = false;
  model.feed_forward.bias = true;
  model.attention.qkv_bias = model.attention.output_bias = true;
}

void read_gpt2(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 50257, 2);
  model.hidden = config.integer({"n_embd", "hidden_size"}, 768);
  model.layers = config.integer({"n_layer", "num_hidden_layers"}, 12);
  model.attention.heads = config.integer({"n_head", "num_attention_heads"}, 12);
  if (config.has("n_inner")) model.feed_forward.hidden = config.integer({"n_inner"}, 0);
  model.feed_forward.activation = activation_of(config, {"activation_function"}, "gelu_new");
  model.position_encoding = PositionEncoding::learned;
  model.positions = config.integer({"n_positions", "max_position_embeddings"}, 1024);
  model.norm_epsilon = config.number({"layer_norm_epsilon"}, 1e-5);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
}

void read_gpt_bigcode(JsonConfig& config, ModelSpec& model) {
  read_gpt2(config, model);
  if (config.flag({"multi_query"}, true)) model.attention.kv_heads = 1;
}

void read_gptj(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 50400, 2);
  model.hidden = config.integer({"n_embd"}, 4096);
  model.layers = config.integer({"n_layer"}, 28);
  model.attention.heads = config.integer({"n_head"}, 16);
  if (config.has("n_inner")) model.feed_forward.hidden = config.integer({"n_inner"}, 0);
  model.feed_forward.activation = activation_of(config, {"activation_function"}, "gelu_new");
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.parallel_blocks = true;
  model.norms_per_layer = 1;
  model.output_bias = true;
  model.norm_epsilon = config.number({"layer_norm_epsilon"}, 1e-5);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, false);
  const std::int64_t rotated = config.integer({"rotary_dim"}, 64);
  read_rotary(config, model);
  if (model.attention.heads > 0 && model.hidden >= model.attention.heads)
    model.rotary.fraction =
        static_cast<double>(rotated) / static_cast<double>(model.hidden / model.attention.heads);
}

void read_gpt_neox(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 50432, 2);
  model.hidden = config.integer({"hidden_size"}, 6144);
  model.layers = config.integer({"num_hidden_layers"}, 44);
  model.attention.heads = config.integer({"num_attention_heads"}, 64);
  model.feed_forward.hidden = config.integer({"intermediate_size"}, 24576);
  model.feed_forward.activation = activation_of(config, {"hidden_act"}, "gelu");
  model.attention.qkv_bias = model.attention.output_bias = config.flag({"attention_bias"}, true);
  model.parallel_blocks = config.flag({"use_parallel_residual"}, true);
  model.norm_epsilon = config.number({"layer_norm_eps"}, 1e-5);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, false);
  read_rotary(config, model);
  model.rotary.theta = config.number({"rotary_emb_base", "rope_theta"}, 10000);
  model.rotary.fraction = config.number({"rotary_pct", "partial_rotary_factor"}, 0.25);
}

void read_opt(JsonConfig& config, ModelSpec& model) {
  constexpr std::int64_t position_offset = 2;  // OPTLearnedPositionalEmbedding adds two rows
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 50272, 2);
  model.hidden = config.integer({"hidden_size"}, 768);
  model.layers = config.integer({"num_hidden_layers"}, 12);
  model.attention.heads = config.integer({"num_attention_heads"}, 12);
  model.feed_forward.hidden = config.integer({"ffn_dim"}, 3072);
  model.feed_forward.activation = activation_of(config, {"activation_function"}, "relu");
  const bool biased = config.flag({"enable_bias"}, true);
  model.attention.qkv_bias = model.attention.output_bias = model.feed_forward.bias = biased;
  model.position_encoding = PositionEncoding::learned;
  model.positions = config.integer({"max_position_embeddings"}, 2048) + position_offset;
  model.final_norm =
      config.flag({"do_layer_norm_before"}, true) && !config.flag({"_remove_final_layer_norm"}, false);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
  if (!config.has("word_embed_proj_dim")) return;
  const std::int64_t width = config.integer({"word_embed_proj_dim"}, model.hidden);
  if (width != model.hidden) model.embedding_width = width;
}

void read_bloom(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 250880, 2);
  model.hidden = config.integer({"hidden_size", "n_embed"}, 64);
  model.layers = config.integer({"n_layer", "num_hidden_layers"}, 2);
  model.attention.heads = config.integer({"n_head", "num_attention_heads"}, 8);
  model.feed_forward.activation = Activation::gelu_tanh;
  model.position_encoding = PositionEncoding::alibi;
  model.embedding_norm = true;
  model.norm_epsilon = config.number({"layer_norm_epsilon"}, 1e-5);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
}

void read_falcon(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 65024, 2);
  model.hidden = config.integer({"hidden_size"}, 4544);
  model.layers = config.integer({"num_hidden_layers", "n_layer"}, 32);
  model.attention.heads = config.integer({"num_attention_heads", "n_head"}, 71);
  if (config.has("ffn_hidden_size")) model.feed_forward.hidden = config.integer({"ffn_hidden_size"}, 0);
  const bool legacy_40b = config.text({"model_type"}, "") == "RefinedWeb";
  const bool new_architecture = config.flag({"new_decoder_architecture"}, legacy_40b);
  if (new_architecture)
    model.attention.kv_heads = config.integer({"num_kv_heads", "n_head_kv"}, model.attention.heads);
  else if (config.flag({"multi_query"}, true))
    model.attention.kv_heads = 1;
  const bool biased = config.flag({"bias"}, false);
  model.attention.qkv_bias = model.attention.output_bias = model.feed_forward.bias = biased;
  model.feed_forward.activation = activation_of(config, {"activation"}, "gelu");
  model.parallel_blocks = new_architecture || config.flag({"parallel_attn"}, true);
  model.norms_per_layer = model.parallel_blocks ? 1 : 2;
  if (new_architecture)
    model.norms_per_layer =
        config.has("num_ln_in_parallel_attn") ? config.integer({"num_ln_in_parallel_attn"}, 2) : 2;
  model.norm_epsilon = config.number({"layer_norm_epsilon"}, 1e-5);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
  read_rotary(config, model);
  if (config.flag({"alibi"}, false)) model.position_encoding = PositionEncoding::alibi;
}

/// Learned positions, where a configuration says that linear biases do not take their place.
bool mpt_adds_positions(JsonConfig& config) {
  if (!config.flag({"learned_pos_emb"}, true)) return false;
  const auto attention = config.object().find("attn_config");
  if (attention == config.object().end() || attention->is_null()) return false;
  if (!attention->is_object()) {
    config.error("attn_config", "attn_config: expected an object");
    return false;
  }
  const auto alibi = attention->find("alibi");
  return alibi != attention->end() && alibi->is_boolean() && !alibi->get<bool>();
}

void read_mpt(JsonConfig& config, ModelSpec& model) {
  start_gpt_like(model);
  model.vocabulary = config.integer({"vocab_size"}, 50368, 2);
  model.hidden = config.integer({"d_model", "hidden_size"}, 2048);
  model.layers = config.integer({"n_layers", "num_hidden_layers"}, 24);
  model.attention.heads = config.integer({"n_heads", "num_attention_heads"}, 16);
  model.feed_forward.hidden = config.integer({"expansion_ratio"}, 4) * model.hidden;
  model.feed_forward.activation = Activation::gelu;
  const bool biased = !config.flag({"no_bias"}, true);
  model.attention.qkv_bias = model.attention.output_bias = model.feed_forward.bias = model.norm_bias = biased;
  model.position_encoding = PositionEncoding::alibi;
  if (mpt_adds_positions(config)) {
    model.position_encoding = PositionEncoding::learned;
    model.positions = config.integer({"max_seq_len"}, 2048);
  }
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
}

void read_t5(JsonConfig& config, ModelSpec& model) {
  constexpr std::int64_t usual_buckets = 32;
  model.vocabulary = config.integer({"vocab_size"}, 32128, 2);
  model.hidden = config.integer({"d_model"}, 512);
  model.encoder_layers = config.integer({"num_layers"}, 6);
  model.layers =
      config.has("num_decoder_layers") ? config.integer({"num_decoder_layers"}, 0) : model.encoder_layers;
  model.attention.heads = config.integer({"num_heads"}, 8);
  model.attention.head_dim = config.integer({"d_kv"}, 64);
  model.feed_forward.hidden = config.integer({"d_ff"}, 2048);
  const std::string projection = config.text({"feed_forward_proj"}, "relu");
  model.feed_forward.gated = projection.starts_with("gated-");
  model.feed_forward.activation = projection.ends_with("relu") ? Activation::relu : Activation::gelu_tanh;
  model.normalization = Normalization::rms_norm;
  model.norm_bias = false;
  model.norm_epsilon = config.number({"layer_norm_epsilon"}, 1e-6);
  model.position_encoding = PositionEncoding::relative;
  if (config.has("relative_attention_num_buckets"))
    model.positions = config.integer({"relative_attention_num_buckets"}, usual_buckets);
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, true);
}

constexpr std::array<std::pair<std::string_view, FamilyReader>, 24> families{{
    {"gpt2", read_gpt2},
    {"gpt_bigcode", read_gpt_bigcode},
    {"gpt_neox", read_gpt_neox},
    {"gptj", read_gptj},
    {"opt", read_opt},
    {"bloom", read_bloom},
    {"falcon", read_falcon},
    {"RefinedWeb", read_falcon},
    {"RefinedWebModel", read_falcon},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"phi3", read_phi3},
    {"qwen2", read_qwen2},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3},
    {"deepseek_v2", read_deepseek_v2},
    {"deepseek_v3", read_deepseek_v3},
    {"mpt", read_mpt},
    {"t5", read_t5},
}};

}  // namespace

FamilyReader family_reader(std::string_view model_type) {
  for (const auto& [name, reader] : families)
    if (name == model_type) return reader;
  return nullptr;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& family : families) names.emplace_back(family.first);
  return names;
}

}  // namespace specs
