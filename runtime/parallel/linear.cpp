#include "runtime/parallel/linear.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/kernels/matrix_products.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

at::Tensor rows_like(const at::Tensor& matrix, std::int64_t rows) {
  return at::empty({rows, matrix.size(1)}, matrix.options());
}

}  // namespace

at::Tensor gather_rows(const at::Tensor& share, const Communicator& tensor) {
  if (tensor.size() == 1) return share;
  const at::Tensor whole = rows_like(share, share.size(0) * tensor.size());
  tensor.all_gather_into(whole, share.contiguous());
  return whole;
}

at::Tensor rows_of_rank(const at::Tensor& rows, const Communicator& tensor) {
  const std::int64_t share = rows.size(0) / tensor.size();
  return rows.narrow(0, tensor.rank() * share, share);
}

at::Tensor reduce_scatter_rows(const at::Tensor& whole, const Communicator& tensor) {
  if (tensor.size() == 1) return whole;
  tensor.reduce_scatter_in_place_async(whole).wait();
  return rows_of_rank(whole, tensor).clone();
}

struct Linear::Function : torch::autograd::Function<Linear::Function> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x, const Linear* layer,
                            ForwardContext* context) {
    node->save_for_backward({x});
    node->saved_data["layer"] = reinterpret_cast<std::int64_t>(layer);
    node->saved_data["context"] = reinterpret_cast<std::int64_t>(context);
    return layer->compute(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* layer = reinterpret_cast<const Linear*>(node->saved_data["layer"].toInt());
    auto* context = reinterpret_cast<ForwardContext*>(node->saved_data["context"].toInt());
    // A weight gradient that waits must not keep the graph, and with it the stage's input.
    const at::Tensor x = node->get_saved_variables()[0].detach();
    return {layer->backpropagate(x, gradients[0].contiguous(), *context), at::Tensor(), at::Tensor()};
  }
};

at::Tensor Linear::forward(const at::Tensor& x, ForwardContext& context) const {
  return Function::apply(x, this, &context);
}

at::Tensor Linear::compute(const at::Tensor& x) const {
  const at::Tensor input = input_ == LinearInput::gathered ? gather_rows(x, *tensor_) : x;
  const at::Tensor& weight = weight_->value();
  if (output_ == LinearOutput::local || tensor_->size() == 1)
    return kernels::multiply_by_transpose(input, weight, bias_ != nullptr ? bias_->value() : at::Tensor());
  at::Tensor output = kernels::multiply_by_transpose(input, weight);
  if (output_ == LinearOutput::reduced)
    tensor_->all_reduce(output);
  else
    output = reduce_scatter_rows(output, *tensor_);
  if (bias_ != nullptr) output.add_(bias_->value());
  return output;
}

at::Tensor Linear::backpropagate(const at::Tensor& x, const at::Tensor& output_gradient,
                                 ForwardContext& context) const {
  const bool gathers = input_ == LinearInput::gathered && tensor_->size() > 1;
  at::Tensor input = x;
  PendingWork gather;
  if (gathers) {
    input = rows_like(x, x.size(0) * tensor_->size());
    gather = tensor_->all_gather_into_async(input, x);
  }
  const at::Tensor gradient =
      output_ == LinearOutput::scattered ? gather_rows(output_gradient, *tensor_) : output_gradient;
  at::Tensor input_gradient = kernels::multiply_matrices(gradient, weight_->value());
  gather.wait();
  PendingWork reduction;
  if (gathers) {
    reduction = tensor_->reduce_scatter_in_place_async(input_gradient);
  } else if (input_ == LinearInput::copied) {
    reduction = tensor_->all_reduce_async(input_gradient);
  }
  context.weight_gradients.run(
      [this, input, gradient, output_gradient] { accumulate(input, gradient, output_gradient); });
  reduction.wait();
  return gathers ? rows_of_rank(input_gradient, *tensor_).clone() : input_gradient;
}

void Linear::accumulate(const at::Tensor& x, const at::Tensor& output_gradient,
                        const at::Tensor& bias_source) const {
  weight_->accumulate_product(output_gradient, x);
  if (bias_ != nullptr) bias_->accumulate_rows(bias_source);
}

}  // namespace runtime
