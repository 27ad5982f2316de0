#include "runtime/model/activation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/kernels/activation_kernels.h"

namespace runtime {

namespace {

/// The exact GELU, whose error function LibTorch has; gated or not.
at::Tensor gelu(const at::Tensor& x, bool gated) {
  if (!gated) return at::gelu(x);
  const std::int64_t width = x.size(1) / 2;
  return at::gelu(x.narrow(1, 0, width)).mul_(x.narrow(1, width, width));
}

at::Tensor gelu_backward(const at::Tensor& output_gradient, const at::Tensor& x, bool gated) {
  if (!gated) return at::gelu_backward(output_gradient, x);
  const std::int64_t width = x.size(1) / 2;
  const at::Tensor gate = x.narrow(1, 0, width);
  at::Tensor result = at::empty(x.sizes(), x.options());
  result.narrow(1, width, width).copy_(at::gelu(gate).mul_(output_gradient));
  result.narrow(1, 0, width).copy_(at::gelu_backward(output_gradient.mul(x.narrow(1, width, width)), gate));
  return result;
}

struct ActivationFunction : torch::autograd::Function<ActivationFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                            specs::Activation activation, bool gated) {
    node->save_for_backward({x});
    node->saved_data["activation"] = static_cast<std::int64_t>(activation);
    node->saved_data["gated"] = gated;
    return activation == specs::Activation::gelu ? gelu(x, gated) : kernels::activate(x, activation, gated);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto activation = static_cast<specs::Activation>(node->saved_data["activation"].toInt());
    const at::Tensor x = node->get_saved_variables()[0];
    const at::Tensor output_gradient = gradients[0].contiguous();
    const bool gated = node->saved_data["gated"].toBool();
    return {activation == specs::Activation::gelu
                ? gelu_backward(output_gradient, x, gated)
                : kernels::activate_backward(output_gradient, x, activation, gated),
            at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor activate(const at::Tensor& x, specs::Activation activation, bool gated) {
  return ActivationFunction::apply(x, activation, gated);
}

}  // namespace runtime
