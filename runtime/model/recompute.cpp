#include "runtime/model/recompute.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/monitor/memory_class.h"
#include "runtime/monitor/tensor_memory.h"

namespace runtime {

namespace {

/// Keeps the body alive as long as the graph node.
struct Body : torch::CustomClassHolder {
  explicit Body(Recomputable function_) : function(std::move(function_)) {}
  Recomputable function;
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                            const c10::intrusive_ptr<Body>& body) {
    const MemoryClassScope scope(specs::MemoryClass::recomputation_working_set);
    node->save_for_backward({x});
    node->saved_data["body"] = at::IValue::make_capsule(body);
    const at::Tensor output = body->function(x, false);
    retag(output.storage().data_ptr(), specs::MemoryClass::recomputation_checkpoints);
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = node->get_saved_variables()[0].detach().requires_grad_();
    const auto body = c10::static_intrusive_pointer_cast<Body>(node->saved_data["body"].toCapsule());
    const at::AutoGradMode with_gradients(true);
    at::Tensor output;
    {
      const MemoryClassScope scope(specs::MemoryClass::recomputation_working_set);
      output = body->function(x, true);
    }
    torch::autograd::backward({output}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recompute(const at::Tensor& x, Recomputable body) {
  return RecomputeFunction::apply(x, c10::make_intrusive<Body>(std::move(body)));
}

}  // namespace runtime
