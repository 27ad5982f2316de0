#include "specs/language/foreign_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace specs {

namespace {

/// Hugging Face, Megatron-LM, DeepSpeed, torchtitan and common shorthand.
constexpr std::array<std::pair<std::string_view, std::string_view>, 66> foreign_names{{
    {"num_layers", "layers"},
    {"n_layers", "layers"},
    {"n_layer", "layers"},
    {"num_hidden_layers", "layers"},
    {"hidden_size", "hidden"},
    {"n_embd", "hidden"},
    {"d_model", "hidden"},
    {"dim", "hidden"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"n_head", "heads"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"num_query_groups", "kv_heads"},
    {"n_kv_heads", "kv_heads"},
    {"kv_channels", "head_dim"},
    {"ffn_hidden_size", "ffn_hidden"},
    {"intermediate_size", "ffn_hidden"},
    {"d_ff", "ffn_hidden"},
    {"n_inner", "ffn_hidden"},
    {"vocab", "vocabulary"},
    {"vocab_size", "vocabulary"},
    {"padded_vocab_size", "vocabulary"},
    {"make_vocab_size_divisible_by", "vocabulary_multiple"},
    {"max_position_embeddings", "positions"},
    {"n_positions", "positions"},
    {"tie_word_embeddings", "tied_embeddings"},
    {"moe", "mixture"},
    {"num_experts", "experts"},
    {"num_local_experts", "experts"},
    {"n_routed_experts", "experts"},
    {"num_experts_per_tok", "top_k"},
    {"moe_router_topk", "top_k"},
    {"moe_intermediate_size", "expert_hidden"},
    {"moe_ffn_hidden_size", "expert_hidden"},
    {"seq_len", "sequence_length"},
    {"seq_length", "sequence_length"},
    {"sequence", "sequence_length"},
    {"batch", "global_batch"},
    {"batch_size", "global_batch"},
    {"global_batch_size", "global_batch"},
    {"train_batch_size", "global_batch"},
    {"dtype", "precision"},
    {"iterations", "steps"},
    {"train_iters", "steps"},
    {"max_steps", "steps"},
    {"learning_rate", "lr"},
    {"eps", "epsilon"},
    {"clip_grad", "gradient_clip"},
    {"reduce_bucket_size", "gradient_bucket_elements"},
    {"allgather_bucket_size", "gather_bucket_elements"},
    {"ddp_bucket_size", "gradient_bucket_elements"},
    {"gradient_clipping", "gradient_clip"},
    {"max_grad_norm", "gradient_clip"},
    {"tp", "tensor"},
    {"pp", "pipeline"},
    {"dp", "data"},
    {"cp", "context"},
    {"ep", "expert"},
    {"etp", "expert_tensor"},
    {"micro_batch_size", "micro_batch"},
    {"zero", "zero_stage"},
    {"recompute", "recomputation"},
    {"gpus_per_node", "devices"},
    {"num_nodes", "nodes"},
    {"gpu", "device"},
}};

}  // namespace

std::string known_name_of(std::string_view foreign, const std::vector<std::string>& known) {
  const auto found = std::find_if(foreign_names.begin(), foreign_names.end(),
                                  [foreign](const auto& entry) { return entry.first == foreign; });
  if (found == foreign_names.end()) return {};
  const bool is_known = std::find(known.begin(), known.end(), found->second) != known.end();
  return is_known ? std::string(found->second) : std::string();
}

}  // namespace specs
