// Products of bf16 matrices summed into fp32: what the weight gradient of a linear layer is.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// True for bf16 operands and an fp32 sum, all contiguous, on a processor with bf16 instructions.
bool can_accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

/// sum [m, n] += leftᵀ · right; left [k, m], right [k, n]. The product is never rounded to bf16.
void accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

}  // namespace runtime::kernels
