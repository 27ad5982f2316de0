// The embedding table and the output layer with its loss, over the tensor axis.
//
// Rank r of t holds rows [r · P/t, (r + 1) · P/t) of the table padded to P rows. Padding rows are zero, never
// looked up, and masked out of the softmax, so that the loss does not depend on t.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/comm/communicator.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/parameter_registry.h"

namespace runtime {

/// The rows of a vocabulary that one rank holds.
struct VocabularySlice {
  std::int64_t first = 0;
  std::int64_t rows = 0;   ///< with padding
  std::int64_t valid = 0;  ///< without
};

/// Vocabulary padded to a multiple of `multiple` × `size`.
VocabularySlice vocabulary_slice(std::int64_t vocabulary, std::int64_t multiple, std::int64_t rank,
                                 std::int64_t size);

class VocabularyEmbedding {
 public:
  VocabularyEmbedding(ParameterBlock& table, VocabularySlice slice, const Communicator& tensor,
                      bool sequence_parallel)
      : table_(&table), slice_(slice), tensor_(&tensor), sequence_parallel_(sequence_parallel) {}

  /// [tokens, hidden], or this rank's share of the rows. Outside of autograd: its input has no gradient.
  at::Tensor forward(const ForwardContext& context) const;
  void backward(const at::Tensor& output_gradient, const ForwardContext& context) const;

 private:
  ParameterBlock* table_;
  VocabularySlice slice_;
  const Communicator* tensor_;
  bool sequence_parallel_;
};

/// gradient[index[i]] += rows[i], in order of i; indices outside of [0, gradient rows) are passed over.
void scatter_add_rows(const at::Tensor& gradient, const at::Tensor& index, const at::Tensor& rows);

class VocabularyLoss {
 public:
  VocabularyLoss(ParameterBlock& table, VocabularySlice slice, const Communicator& tensor,
                 bool sequence_parallel)
      : table_(&table), slice_(slice), tensor_(&tensor), sequence_parallel_(sequence_parallel) {}

  /// x [tokens or share, hidden] → loss_weight × sum over the target tokens of −log p(target): an fp64
  /// scalar, the same on every rank of the axis. Its gradient is taken to be 1.
  ///
  /// Saved for backward: x and the gradient of the logits [tokens, rows of the slice] in the precision of x,
  /// which takes the place of the logits themselves.
  at::Tensor forward(const at::Tensor& x, ForwardContext& context) const;

  /// x → this rank's columns of the logits, [tokens, valid rows of the slice]; outside of autograd.
  at::Tensor logits(const at::Tensor& x) const;

 private:
  struct Function;
  struct Result;
  Result compute(const at::Tensor& x, const ForwardContext& context, bool with_gradient) const;
  at::Tensor backpropagate(const at::Tensor& x, const at::Tensor& logits_gradient,
                           ForwardContext& context) const;

  ParameterBlock* table_;
  VocabularySlice slice_;
  const Communicator* tensor_;
  bool sequence_parallel_;
};

}  // namespace runtime
