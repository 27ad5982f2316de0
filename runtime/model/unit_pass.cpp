#include "runtime/model/unit_pass.h"

#include <torch/csrc/autograd/custom_function.h>

#include "runtime/model/forward_context.h"

namespace runtime {

namespace {

using Event = void (UnitPassListener::*)(std::int64_t);

/// The identity, whose backward pass tells the listener.
template <Event event>
struct Gate : torch::autograd::Function<Gate<event>> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x, std::int64_t unit,
                            UnitPassListener* listener) {
    node->saved_data["unit"] = unit;
    node->saved_data["listener"] = reinterpret_cast<std::int64_t>(listener);
    return x.view(x.sizes());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    auto* listener = reinterpret_cast<UnitPassListener*>(node->saved_data["listener"].toInt());
    (listener->*event)(node->saved_data["unit"].toInt());
    return {gradients[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor enter_unit(const at::Tensor& x, std::int64_t unit, const ForwardContext& context) {
  if (context.units == nullptr) return x;
  context.units->forward_begins(unit);
  return Gate<&UnitPassListener::backward_ends>::apply(x, unit, context.units);
}

at::Tensor leave_unit(const at::Tensor& x, std::int64_t unit, const ForwardContext& context) {
  if (context.units == nullptr) return x;
  context.units->forward_ends(unit);
  return Gate<&UnitPassListener::backward_begins>::apply(x, unit, context.units);
}

}  // namespace runtime
