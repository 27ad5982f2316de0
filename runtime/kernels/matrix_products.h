// The matrix products of a linear layer and its gradients: on the processor's matrix registers for bf16 where
// it has them, MKL's for fp16 on x86, else LibTorch's. 16 bits are summed in fp32 and rounded once.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// x · weightᵀ + bias, rounded once; x [rows, in], weight [out, in], bias [out] or undefined.
at::Tensor multiply_by_transpose(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// left · right; left [m, k], right [k, n].
at::Tensor multiply_matrices(const at::Tensor& left, const at::Tensor& right);

/// True for bf16 operands on a processor with bf16 instructions, for fp16 ones on x86, with an fp32 sum; all
/// contiguous.
bool can_accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

/// sum [m, n] += leftᵀ · right; left [k, m], right [k, n]. The product is never rounded to 16 bits.
void accumulate_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right);

}  // namespace runtime::kernels
