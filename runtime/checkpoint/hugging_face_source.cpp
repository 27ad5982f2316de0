#include "runtime/checkpoint/hugging_face_source.h"

#include <string_view>

namespace runtime {

namespace {

/// Linear layers of GPT-2 (transformers, modeling_gpt2.py) that are Conv1D: weight [in, out].
bool is_conv1d(std::string_view name) {
  return name.find(".attn.") != std::string_view::npos || name.find(".mlp.") != std::string_view::npos;
}

/// Rows of the fused c_attn before the query, key or value projection; −1 for any other parameter.
std::int64_t row_in_fused(std::string_view projection, const specs::AttentionSpec& attention) {
  const std::int64_t query = attention.heads * attention.head_dim;
  const std::int64_t key = attention.kv_heads * attention.head_dim;
  if (projection == "q_proj") return 0;
  if (projection == "k_proj") return query;
  if (projection == "v_proj") return query + key;
  return -1;
}

}  // namespace

HuggingFaceSource hugging_face_source(const specs::ModelSpec& model, const std::string& name,
                                      const std::vector<std::int64_t>& shape) {
  HuggingFaceSource source{name, shape};
  if (!name.starts_with("transformer.") || !is_conv1d(name)) return source;
  const std::size_t dot = name.rfind('.');
  const std::size_t before = name.rfind('.', dot - 1);
  if (const std::int64_t row = row_in_fused(name.substr(before + 1, dot - before - 1), model.attention);
      row >= 0) {
    source.name = name.substr(0, before) + ".c_attn" + name.substr(dot);
    source.first_row = row;
    source.shape[0] = (model.attention.heads + 2 * model.attention.kv_heads) * model.attention.head_dim;
  }
  if (shape.size() == 2) {
    source.transposed = true;
    std::swap(source.shape[0], source.shape[1]);
  }
  return source;
}

}  // namespace runtime
