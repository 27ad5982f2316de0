// The core of causal attention, from projected queries, keys and values to the attended values.
//
// Saved for backward by the fused kernel: the projections (rotated in place), the output, and one log-sum-exp
// per token and head (fp32, or fp64 for fp64). The unfused form saves the scores' softmax as well:
// heads × length² per sequence, and with dropout its product with the mask.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "runtime/model/forward_context.h"
#include "runtime/model/rotary.h"
#include "specs/language/vocabulary.h"

namespace runtime {

struct AttentionShape {
  std::int64_t heads = 1;     ///< query heads of this rank
  std::int64_t kv_heads = 1;  ///< key and value heads of this rank; divides `heads`
  std::int64_t head_dim = 1;

  std::int64_t projected_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

class AttentionCore {
 public:
  /// `rotary` is null for models whose positions are in the embedding.
  AttentionCore(AttentionShape shape, const RotaryTable* rotary) : shape_(shape), rotary_(rotary) {}

  /// projected [tokens, (heads + 2 · kv_heads) · head_dim]: queries, then keys, then values; changed in place
  /// by the rotation. → [tokens, heads · head_dim].
  at::Tensor forward(const at::Tensor& projected, const ForwardContext& context) const;

 private:
  struct Function;
  struct Heads;
  Heads split(const at::Tensor& projected, const ForwardContext& context) const;

  AttentionShape shape_;
  const RotaryTable* rotary_;
};

}  // namespace runtime
