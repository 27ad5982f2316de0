// The units of a transformer that a pipeline may be cut between: attention and feed-forward network, each
// with its norm and residual.
//
// Bytes that a unit saves for backward, per token, in elements of the training precision unless stated, with
// t ranks on the tensor axis, h hidden, q = heads · head_dim, kv = kv_heads · head_dim, f the FFN's inner
// width (s = 1, or t with sequence parallelism):
//   attention:     h/s (residual) + stats + h/s (normed) + (q + 2kv)/t + q/t + 4 · heads/t bytes (8 in fp64);
//                  unfused: heads · length/t in place of the latter, or neither where the core is recomputed
//   feed-forward:  h/s (residual) + stats + h/s (normed) + f/t · (2: inner and activated; gated 3)
//   stats:         layer norm 2 elements; RMS norm 4 bytes (8 in fp64)
// A key or value head counts once on each rank that holds it. Dropout saves nothing.
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "runtime/model/attention.h"
#include "runtime/model/dropout.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/norm.h"
#include "runtime/model/rotary.h"
#include "runtime/model/stage_builder.h"
#include "runtime/parallel/linear.h"

namespace runtime {

/// x + f(norm(x)), from residual stream to residual stream: [rows, hidden], all rows of the micro-batch, or
/// this rank's share with sequence parallelism.
class TransformerUnit {
 public:
  /// `unit`: its number in the model's chain of units.
  explicit TransformerUnit(std::int64_t unit) : unit_(unit) {}
  virtual ~TransformerUnit() = default;
  at::Tensor forward(const at::Tensor& x, ForwardContext& context) const {
    if (context.training) ++passes_;
    return compute(x, context);
  }

  std::int64_t unit() const { return unit_; }
  /// Forward passes in training so far, replays counted: of the whole unit and of its attention core.
  std::int64_t passes() const { return passes_; }
  virtual std::int64_t core_passes() const { return 0; }

 private:
  virtual at::Tensor compute(const at::Tensor& x, ForwardContext& context) const = 0;

  std::int64_t unit_;
  mutable std::int64_t passes_ = 0;
};

class AttentionUnit final : public TransformerUnit {
 public:
  /// `core_recomputed`: see AttentionTreatment.
  AttentionUnit(const StageBuilder& builder, std::int64_t layer, const RotaryTable* rotary,
                bool core_recomputed);
  std::int64_t core_passes() const override { return core_->passes(); }

 private:
  at::Tensor compute(const at::Tensor& x, ForwardContext& context) const override;

  const Communicator& tensor_;
  bool sequence_parallel_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Linear> projections_;
  std::unique_ptr<AttentionCore> core_;
  std::unique_ptr<Linear> output_;
  Dropout dropout_;
};

class FeedForwardUnit final : public TransformerUnit {
 public:
  FeedForwardUnit(const StageBuilder& builder, std::int64_t layer);

 private:
  at::Tensor compute(const at::Tensor& x, ForwardContext& context) const override;

  const Communicator& tensor_;
  bool sequence_parallel_;
  specs::FeedForwardSpec spec_;
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Linear> inner_;
  std::unique_ptr<Linear> output_;
  Dropout dropout_;
};

/// Index in the micro-batch of the first row that this rank holds between the parallel layers.
std::int64_t first_row(const Communicator& tensor, bool sequence_parallel, const ForwardContext& context);

}  // namespace runtime
