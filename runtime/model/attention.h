// The core of causal attention, from projected queries, keys and values to the attended values.
//
// Saved for backward: the projections (rotated in place), and
//   flash    the output and one log-sum-exp per token and head (fp32, or fp64 for fp64);
//   unfused  the softmax of the scores, heads × length² per sequence; nothing of it where it is recomputed.
// Dropout of the attention weights saves nothing. LibTorch's fused kernel knows none: with dropout, flash is
// a kernel of blocks of our own that keeps the same.
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "runtime/model/attention_kernels.h"
#include "runtime/model/dropout.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/rotary.h"
#include "specs/language/vocabulary.h"

namespace runtime {

struct AttentionShape {
  std::int64_t heads = 1;     ///< query heads of this rank
  std::int64_t kv_heads = 1;  ///< key and value heads of this rank; divides `heads`
  std::int64_t head_dim = 1;
  std::int64_t first_head = 0;   ///< of the model, on this rank
  std::int64_t model_heads = 1;  ///< of all ranks

  std::int64_t projected_width() const { return (heads + 2 * kv_heads) * head_dim; }
};

struct AttentionTreatment {
  specs::AttentionImplementation implementation = specs::AttentionImplementation::flash;
  /// The softmax is not kept but computed again (selective recomputation). Flash does so in any case.
  bool recomputed = false;
};

class AttentionCore {
 public:
  /// `rotary` is null for models whose positions are in the embedding.
  AttentionCore(AttentionShape shape, AttentionTreatment treatment, const RotaryTable* rotary,
                Dropout dropout)
      : shape_(shape), treatment_(treatment), rotary_(rotary), dropout_(dropout) {}

  /// projected [tokens, (heads + 2 · kv_heads) · head_dim]: queries, then keys, then values; changed in place
  /// by the rotation. → [tokens, heads · head_dim].
  at::Tensor forward(const at::Tensor& projected, const ForwardContext& context) const;

  /// In training, so far: once for each forward pass, and again for each that was recomputed.
  std::int64_t passes() const { return passes_; }

 private:
  struct Function;
  struct Heads;
  enum class Kernel : std::uint8_t { fused, blockwise, unfused };
  Kernel kernel(const ForwardContext& context) const;
  Heads split(const at::Tensor& projected, const ForwardContext& context) const;
  AttentionInputs inputs(const Heads& heads) const;
  WeightDropout weight_dropout(const ForwardContext& context) const;

  AttentionShape shape_;
  AttentionTreatment treatment_;
  const RotaryTable* rotary_;
  Dropout dropout_;
  mutable std::int64_t passes_ = 0;
};

}  // namespace runtime
