// Names of parameters, as Hugging Face's GPT-2 and Llama have them. GPT-2's fused `attn.c_attn` stands here
// as its parts `attn.q_proj`, `attn.k_proj`, `attn.v_proj`, and every weight as [out, in].
#pragma once

#include <cstdint>
#include <string>

#include "specs/language/model.h"

namespace runtime {

class ParameterNames {
 public:
  explicit ParameterNames(const specs::ModelSpec& model)
      : gpt_(model.normalization == specs::Normalization::layer_norm) {}

  std::string embedding() const { return gpt_ ? "transformer.wte.weight" : "model.embed_tokens.weight"; }
  std::string positions() const { return gpt_ ? "transformer.wpe.weight" : "model.embed_positions.weight"; }
  std::string output() const { return "lm_head.weight"; }
  std::string final_norm() const { return gpt_ ? "transformer.ln_f" : "model.norm"; }
  std::string attention_norm(std::int64_t layer) const {
    return this->layer(layer) + (gpt_ ? ".ln_1" : ".input_layernorm");
  }
  std::string feed_forward_norm(std::int64_t layer) const {
    return this->layer(layer) + (gpt_ ? ".ln_2" : ".post_attention_layernorm");
  }
  /// `projection` is 'q', 'k' or 'v'.
  std::string projection(std::int64_t layer, char projection) const {
    return attention(layer) + "." + projection + "_proj";
  }
  std::string attention_output(std::int64_t layer) const {
    return attention(layer) + (gpt_ ? ".c_proj" : ".o_proj");
  }
  std::string gate(std::int64_t layer) const { return this->layer(layer) + ".mlp.gate_proj"; }
  std::string up(std::int64_t layer) const {
    return this->layer(layer) + (gpt_ ? ".mlp.c_fc" : ".mlp.up_proj");
  }
  std::string down(std::int64_t layer) const {
    return this->layer(layer) + (gpt_ ? ".mlp.c_proj" : ".mlp.down_proj");
  }

 private:
  std::string layer(std::int64_t layer) const {
    return (gpt_ ? "transformer.h." : "model.layers.") + std::to_string(layer);
  }
  std::string attention(std::int64_t layer) const {
    return this->layer(layer) + (gpt_ ? ".attn" : ".self_attn");
  }

  bool gpt_;
};

}  // namespace runtime
