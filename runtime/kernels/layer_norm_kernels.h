// The gradients of layer norm over the width of each row, in one pass.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

struct LayerNormGradients {
  at::Tensor x;
  at::Tensor weight, bias;  ///< [width], fp32 or, for fp64, fp64
};

/// Of y = (x − mean) · scale · weight + bias; `x` and `output_gradient` [rows, width], `weight` [width], and
/// of each row its mean and the reciprocal `scale` of its deviation, all of one type. Where `beside` is
/// defined, the gradient of x by another way, the two are added before they are rounded.
LayerNormGradients layer_norm_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                                       const at::Tensor& mean, const at::Tensor& scale,
                                       const at::Tensor& weight, const at::Tensor& beside = {});

}  // namespace runtime::kernels
