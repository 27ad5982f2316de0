// Layer norm and RMS norm over the width of each token.
//
// Saved for backward: the input and one or two numbers per token (mean and reciprocal deviation, in the
// precision of the input for layer norm, fp32 or better for RMS norm).
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/model/forward_context.h"
#include "runtime/model/parameter_registry.h"
#include "specs/language/model.h"

namespace runtime {

class Norm {
 public:
  /// Bias null for RMS norm and for layer norm without one.
  Norm(specs::Normalization kind, ParameterBlock& weight, ParameterBlock* bias, double epsilon)
      : kind_(kind), weight_(&weight), bias_(bias), epsilon_(epsilon) {}

  at::Tensor forward(const at::Tensor& x) const;

  struct Branch {
    at::Tensor stream, normal;
  };
  /// The input and its norm, for a residual stream that goes on beside what is made of the norm: the
  /// gradients of both are summed in the norm's own pass.
  Branch branch(const at::Tensor& x) const;

 private:
  struct LayerNorm;
  struct RmsNorm;

  specs::Normalization kind_;
  ParameterBlock* weight_;
  ParameterBlock* bias_;
  double epsilon_;
};

}  // namespace runtime
