// The optimizers' arithmetic, element by element: the result for an element does not depend on where it lies
// in the range, on the range's length or on the instruction set, so that a sharded update equals the whole
// one bit for bit. (No product is contracted with a sum; square root and division are correctly rounded.)
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runtime/optimizer/instruction_set.h"

namespace runtime {

/// Of one update; `step` counts from 1.
struct UpdateFactors {
  double learning_rate = 0;
  double weight_decay = 0;
  double gradient_scale = 1;  ///< clipping and the inverse of the loss scale
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double momentum = 0.9;
  std::int64_t step = 1;
};

/// AdamW (Loshchilov and Hutter 2019): w ← w (1 − lr·λ) − lr / (1 − β₁ᵗ) · m / (√(v / (1 − β₂ᵗ)) + ε).
/// Flat, contiguous, of one length; weight and moments of one type (fp32, fp64), the gradient of any. The
/// instructions are the widest that the processor has, unless told.
void update_adamw(const at::Tensor& weight, const at::Tensor& first_moment, const at::Tensor& second_moment,
                  const at::Tensor& gradient, const UpdateFactors& factors,
                  InstructionSet instructions = instruction_sets().back());

/// SGD with momentum: b ← μ·b + (g + λ·w); w ← w − lr·b.
void update_sgd(const at::Tensor& weight, const at::Tensor& momentum, const at::Tensor& gradient,
                const UpdateFactors& factors, InstructionSet instructions = instruction_sets().back());

/// Sum of squares in fp64, in an order that depends on the length alone.
double sum_of_squares(const at::Tensor& flat);

}  // namespace runtime
