#include "runtime/model/norm.h"

#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/kernels/rms_norm_kernels.h"

namespace runtime {

namespace {

std::optional<at::Tensor> optional_value(const ParameterBlock* block) {
  return block != nullptr ? std::optional(block->value()) : std::nullopt;
}

}  // namespace

struct Norm::LayerNorm : torch::autograd::Function<Norm::LayerNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x, const Norm* norm) {
    const auto [y, mean, deviation] = at::native_layer_norm(x, {x.size(1)}, norm->weight_->value(),
                                                            optional_value(norm->bias_), norm->epsilon_);
    node->save_for_backward({x, mean, deviation});
    node->saved_data["norm"] = reinterpret_cast<std::int64_t>(norm);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* norm = reinterpret_cast<const Norm*>(node->saved_data["norm"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    const auto [x_gradient, weight_gradient, bias_gradient] = at::native_layer_norm_backward(
        gradients[0].contiguous(), saved[0], {saved[0].size(1)}, saved[1], saved[2], norm->weight_->value(),
        optional_value(norm->bias_), {true, true, norm->bias_ != nullptr});
    norm->weight_->accumulate(weight_gradient);
    if (norm->bias_ != nullptr) norm->bias_->accumulate(bias_gradient);
    return {x_gradient, at::Tensor()};
  }
};

struct Norm::RmsNorm : torch::autograd::Function<Norm::RmsNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x, const Norm* norm) {
    const kernels::RmsNormOutput output = kernels::rms_norm(x, norm->weight_->value(), norm->epsilon_);
    node->save_for_backward({x, output.scale});
    node->saved_data["norm"] = reinterpret_cast<std::int64_t>(norm);
    return output.y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* norm = reinterpret_cast<const Norm*>(node->saved_data["norm"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    const kernels::RmsNormGradients result =
        kernels::rms_norm_backward(gradients[0].contiguous(), saved[0], saved[1], norm->weight_->value());
    norm->weight_->accumulate(result.weight);
    return {result.x, at::Tensor()};
  }
};

at::Tensor Norm::forward(const at::Tensor& x) const {
  return kind_ == specs::Normalization::layer_norm ? LayerNorm::apply(x, this) : RmsNorm::apply(x, this);
}

}  // namespace runtime
