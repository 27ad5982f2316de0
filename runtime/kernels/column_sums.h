// The sum over the rows of a matrix, which the gradient of a bias is.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// sum [columns] += Σ rows [n, columns]; `sum` contiguous, in fp32, or fp64 where the rows are. Each column
/// adds up in an order that depends on n alone.
void add_column_sums(const at::Tensor& sum, const at::Tensor& rows);

}  // namespace runtime::kernels
