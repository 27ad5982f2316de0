// The rows of a cross-entropy: statistics of the softmax, and the gradient of the logits in place of the
// logits.
//
// A rank may hold some of the columns of each row: its statistics are then put together with the others'.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// Of the columns that are here. fp32, or fp64 for fp64 logits.
struct RowStatistics {
  at::Tensor maximum;       ///< [rows]
  at::Tensor exponentials;  ///< [rows] sum of exp(logit − maximum)
  at::Tensor target;        ///< [rows] logit of the target, 0 where it is not here
};

/// Logits [rows, columns]; target int64 [rows], a column or −1.
RowStatistics row_statistics(const at::Tensor& input, const at::Tensor& target);

/// logits, contiguous, ← exp(logits − maximum) · scale, less `weight` at the target. maximum, scale and
/// weight [rows] in the type of the statistics.
void turn_into_gradient(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& maximum,
                        const at::Tensor& scale, const at::Tensor& weight);

}  // namespace runtime::kernels
