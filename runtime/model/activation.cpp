#include "runtime/model/activation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

namespace runtime {

namespace {

at::Tensor value_of(specs::Activation activation, const at::Tensor& x) {
  switch (activation) {
    case specs::Activation::gelu:
      return at::gelu(x);
    case specs::Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case specs::Activation::relu:
      return at::relu(x);
    case specs::Activation::squared_relu:
      return at::relu(x).square_();
    case specs::Activation::silu:
      return at::silu(x);
  }
  return x;
}

at::Tensor gradient_of(specs::Activation activation, const at::Tensor& output_gradient, const at::Tensor& x) {
  switch (activation) {
    case specs::Activation::gelu:
      return at::gelu_backward(output_gradient, x);
    case specs::Activation::gelu_tanh:
      return at::gelu_backward(output_gradient, x, "tanh");
    case specs::Activation::relu:
      return at::threshold_backward(output_gradient, x, 0);
    case specs::Activation::squared_relu:
      return at::relu(x).mul_(2).mul_(output_gradient);
    case specs::Activation::silu:
      return at::silu_backward(output_gradient, x);
  }
  return output_gradient;
}

struct ActivationFunction : torch::autograd::Function<ActivationFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                            specs::Activation activation, bool gated) {
    node->save_for_backward({x});
    node->saved_data["activation"] = static_cast<std::int64_t>(activation);
    node->saved_data["gated"] = gated;
    if (!gated) return value_of(activation, x);
    const std::int64_t width = x.size(1) / 2;
    return value_of(activation, x.narrow(1, 0, width)).mul_(x.narrow(1, width, width));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto activation = static_cast<specs::Activation>(node->saved_data["activation"].toInt());
    const at::Tensor x = node->get_saved_variables()[0];
    if (!node->saved_data["gated"].toBool())
      return {gradient_of(activation, gradients[0], x), at::Tensor(), at::Tensor()};
    const std::int64_t width = x.size(1) / 2;
    const at::Tensor gate = x.narrow(1, 0, width);
    const at::Tensor result = at::empty(x.sizes(), x.options());
    result.narrow(1, width, width).copy_(value_of(activation, gate).mul_(gradients[0]));
    result.narrow(1, 0, width)
        .copy_(gradient_of(activation, gradients[0].mul(x.narrow(1, width, width)), gate));
    return {result, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor activate(const at::Tensor& x, specs::Activation activation, bool gated) {
  return ActivationFunction::apply(x, activation, gated);
}

}  // namespace runtime
