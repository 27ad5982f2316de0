// RMS norm over the width of each row, in one pass each way.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

struct RmsNormOutput {
  at::Tensor y;
  at::Tensor scale;  ///< [rows, 1] (mean x² + ε)^−½, fp32 or, for fp64, fp64
};

/// y = x · scale · weight; input x [rows, width], weight [width] of the same type.
RmsNormOutput rms_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon);

struct RmsNormGradients {
  at::Tensor x;
  at::Tensor weight;  ///< in the type of `scale`
};

/// Where `beside` is defined, the gradient of x by another way, the two are added before they are rounded.
RmsNormGradients rms_norm_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                                   const at::Tensor& scale, const at::Tensor& weight,
                                   const at::Tensor& beside = {});

}  // namespace runtime::kernels
