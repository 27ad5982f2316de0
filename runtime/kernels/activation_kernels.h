// Activations of a feed-forward network, gated or not, in one pass each way.
#pragma once

#include <ATen/core/Tensor.h>

#include "specs/language/model.h"

namespace runtime::kernels {

/// input x [rows, width] → f(x); gated: x [rows, 2 · width] → f(left half) · right half. Any activation but
/// `gelu`, whose error function stays with LibTorch.
at::Tensor activate(const at::Tensor& input, specs::Activation activation, bool gated);
/// The gradient of the input from that of the output [rows, width].
at::Tensor activate_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                             specs::Activation activation, bool gated);

}  // namespace runtime::kernels
