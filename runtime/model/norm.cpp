#include "runtime/model/norm.h"

#include <ATen/ops/native_layer_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/kernels/layer_norm_kernels.h"
#include "runtime/kernels/rms_norm_kernels.h"

namespace runtime {

namespace {

std::optional<at::Tensor> optional_value(const ParameterBlock* block) {
  return block != nullptr ? std::optional(block->value()) : std::nullopt;
}

}  // namespace

// Both return the input beside the norm. The gradient that reaches it, undefined where it was not used, is
// added to the norm's own.

struct Norm::LayerNorm : torch::autograd::Function<Norm::LayerNorm> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                                                const Norm* norm) {
    const auto [y, mean, deviation] = at::native_layer_norm(x, {x.size(1)}, norm->weight_->value(),
                                                            optional_value(norm->bias_), norm->epsilon_);
    node->save_for_backward({x, mean, deviation});
    node->saved_data["norm"] = reinterpret_cast<std::int64_t>(norm);
    node->set_materialize_grads(false);
    return {x, y};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* norm = reinterpret_cast<const Norm*>(node->saved_data["norm"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    const kernels::LayerNormGradients result = kernels::layer_norm_backward(
        gradients[1], saved[0], saved[1], saved[2], norm->weight_->value(), gradients[0]);
    norm->weight_->accumulate(result.weight);
    if (norm->bias_ != nullptr) norm->bias_->accumulate(result.bias);
    return {result.x, at::Tensor()};
  }
};

struct Norm::RmsNorm : torch::autograd::Function<Norm::RmsNorm> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                                                const Norm* norm) {
    const kernels::RmsNormOutput output = kernels::rms_norm(x, norm->weight_->value(), norm->epsilon_);
    node->save_for_backward({x, output.scale});
    node->saved_data["norm"] = reinterpret_cast<std::int64_t>(norm);
    node->set_materialize_grads(false);
    return {x, output.y};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* norm = reinterpret_cast<const Norm*>(node->saved_data["norm"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    const kernels::RmsNormGradients result =
        kernels::rms_norm_backward(gradients[1], saved[0], saved[1], norm->weight_->value(), gradients[0]);
    norm->weight_->accumulate(result.weight);
    return {result.x, at::Tensor()};
  }
};

at::Tensor Norm::forward(const at::Tensor& x) const { return branch(x).normal; }

Norm::Branch Norm::branch(const at::Tensor& x) const {
  const torch::autograd::variable_list both =
      kind_ == specs::Normalization::layer_norm ? LayerNorm::apply(x, this) : RmsNorm::apply(x, this);
  return {both[0], both[1]};
}

}  // namespace runtime
