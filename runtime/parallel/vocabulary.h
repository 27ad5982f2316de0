// The embedding table and the output layer with its loss, over the tensor axis.
//
// Vocabulary-parallel: rank r of t holds rows [r · P/t, (r + 1) · P/t) of the table padded to P rows and
// works on all tokens. Token-parallel: every rank holds the whole table and works on its share of the tokens,
// rows [r · n/t, (r + 1) · n/t), so that its gradient of the table is a part of the sum over the axis. Either
// way a rank holds n · P/t logits of n tokens, never all of them. Padding rows are zero, never looked up, and
// masked out of the softmax, so that the loss does not depend on t.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/comm/communicator.h"
#include "runtime/model/forward_context.h"
#include "runtime/model/parameter_registry.h"
#include "specs/language/vocabulary.h"

namespace runtime {

/// The rows of a vocabulary that one rank holds.
struct VocabularySlice {
  std::int64_t first = 0;
  std::int64_t rows = 0;   ///< with padding
  std::int64_t valid = 0;  ///< without
};

/// Vocabulary padded to a multiple of `multiple` × `size`; a whole table is the slice of rank 0 of 1.
VocabularySlice vocabulary_slice(std::int64_t vocabulary, std::int64_t multiple, std::int64_t rank,
                                 std::int64_t size);

/// How a table lies over the tensor axis, and how the stream beside it does.
struct VocabularyLayout {
  VocabularySlice slice;
  specs::OutputLayerMode mode = specs::OutputLayerMode::vocabulary_parallel;
  bool sequence_parallel = false;  ///< the stream is shared out by rows
};

class VocabularyEmbedding {
 public:
  VocabularyEmbedding(ParameterBlock& table, const VocabularyLayout& layout, const Communicator& tensor)
      : table_(&table), layout_(layout), tensor_(&tensor) {}

  /// [tokens, hidden], or this rank's share of the rows. Outside of autograd: its input has no gradient.
  at::Tensor forward(const ForwardContext& context) const;
  void backward(const at::Tensor& output_gradient, const ForwardContext& context) const;

 private:
  at::Tensor look_up_slice(const at::Tensor& tokens) const;

  ParameterBlock* table_;
  VocabularyLayout layout_;
  const Communicator* tensor_;
};

/// gradient[index[i]] += rows[i], in order of i; indices outside of [0, gradient rows) are passed over.
void scatter_add_rows(const at::Tensor& gradient, const at::Tensor& index, const at::Tensor& rows);

class VocabularyLoss {
 public:
  VocabularyLoss(ParameterBlock& table, const VocabularyLayout& layout, const Communicator& tensor);

  /// x [tokens or share, hidden] → loss_weight × sum over the target tokens of −log p(target): an fp64
  /// scalar, the same on every rank of the axis. Its gradient is taken to be 1.
  ///
  /// Saved for backward: x and the gradient of the logits of this rank in the precision of x, which takes the
  /// place of the logits themselves.
  at::Tensor forward(const at::Tensor& x, ForwardContext& context) const;

  /// x → this rank's part of the logits, [its tokens, valid rows of the slice]; outside of autograd.
  at::Tensor logits(const at::Tensor& x) const;

 private:
  struct Function;
  struct Result;
  /// The rows of the stream whose logits this rank computes.
  at::Tensor input_rows(const at::Tensor& x) const;
  Result compute(const at::Tensor& x, const ForwardContext& context, bool with_gradient) const;
  at::Tensor backpropagate(const at::Tensor& x, const at::Tensor& logits_gradient,
                           ForwardContext& context) const;

  ParameterBlock* table_;
  VocabularyLayout layout_;
  const Communicator* tensor_;
  Communicator softmax_;  ///< the ranks over which a row's logits lie
};

}  // namespace runtime
