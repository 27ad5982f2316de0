#include "runtime/model/attention.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/monitor/memory_class.h"

namespace runtime {

/// Views [sequences, length, heads, head_dim] into one projected matrix.
struct AttentionCore::Heads {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

namespace {

/// [sequences, length, kv_heads, d] → [sequences, heads, length, d], each key or value head before the
/// `repeats` query heads that read it. A view where repeats = 1.
at::Tensor expand_heads(const at::Tensor& heads, std::int64_t repeats) {
  if (repeats == 1) return heads.transpose(1, 2);
  const std::int64_t sequences = heads.size(0), length = heads.size(1), kv = heads.size(2),
                     dim = heads.size(3);
  return heads.unsqueeze(3)
      .expand({sequences, length, kv, repeats, dim})
      .reshape({sequences, length, kv * repeats, dim})
      .transpose(1, 2);
}

/// The inverse for gradients: the sum over the query heads that read a head.
at::Tensor sum_repeats(const at::Tensor& gradient, std::int64_t repeats) {
  const at::Tensor heads = gradient.transpose(1, 2);
  if (repeats == 1) return heads;
  return heads.unflatten(2, {heads.size(2) / repeats, repeats}).sum(3);
}

}  // namespace

AttentionCore::Heads AttentionCore::split(const at::Tensor& projected, const ForwardContext& context) const {
  const at::Tensor heads = projected.view(
      {context.sequences, context.length, shape_.heads + 2 * shape_.kv_heads, shape_.head_dim});
  return {heads.narrow(2, 0, shape_.heads), heads.narrow(2, shape_.heads, shape_.kv_heads),
          heads.narrow(2, shape_.heads + shape_.kv_heads, shape_.kv_heads)};
}

AttentionInputs AttentionCore::inputs(const Heads& heads) const {
  const std::int64_t repeats = shape_.heads / shape_.kv_heads;
  return {heads.queries.transpose(1, 2), expand_heads(heads.keys, repeats),
          expand_heads(heads.values, repeats)};
}

AttentionCore::Kernel AttentionCore::kernel(const ForwardContext& context) const {
  if (treatment_.implementation == specs::AttentionImplementation::unfused) return Kernel::unfused;
  return dropout_.active(context) ? Kernel::blockwise : Kernel::fused;
}

WeightDropout AttentionCore::weight_dropout(const ForwardContext& context) const {
  if (!dropout_.active(context)) return {};
  return [this, &context](const at::Tensor& weights, std::int64_t first_query) {
    const std::int64_t queries = weights.size(2);
    const auto first_element = [&](std::int64_t row) {
      const std::int64_t query = first_query + row % queries;
      const std::int64_t head = shape_.first_head + row / queries % shape_.heads;
      const std::int64_t sequence = context.batch->first_sequence + row / queries / shape_.heads;
      return ((sequence * shape_.model_heads + head) * context.length + query) * context.length;
    };
    dropout_.drop_(weights.view({-1, weights.size(3)}), first_element, context);
  };
}

struct AttentionCore::Function : torch::autograd::Function<AttentionCore::Function> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& projected,
                            const AttentionCore* core, const ForwardContext* context) {
    const Heads heads = core->split(projected, *context);
    if (core->rotary_ != nullptr) {
      core->rotary_->rotate(heads.queries, 1);
      core->rotary_->rotate(heads.keys, 1);
    }
    if (context->training) ++core->passes_;
    node->saved_data["core"] = reinterpret_cast<std::int64_t>(core);
    node->saved_data["context"] = reinterpret_cast<std::int64_t>(context);
    const AttentionInputs inputs = core->inputs(heads);
    const WeightDropout dropout = core->weight_dropout(*context);
    at::Tensor output;
    if (core->kernel(*context) == Kernel::unfused) {
      const at::Tensor weights = attention_weights(inputs);
      output = unfused_attention(weights, inputs.values, dropout);
      node->save_for_backward(core->treatment_.recomputed
                                  ? torch::autograd::variable_list{projected}
                                  : torch::autograd::variable_list{projected, weights});
    } else {
      const FusedAttention result = dropout ? blockwise_attention(inputs, dropout) : fused_attention(inputs);
      output = result.output;
      node->save_for_backward({projected, result.output, result.log_sum_exp});
    }
    return output.transpose(1, 2).reshape({context->tokens(), core->shape_.heads * core->shape_.head_dim});
  }

  static AttentionInputs gradients_of(const AttentionCore& core, const ForwardContext& context,
                                      const torch::autograd::variable_list& saved,
                                      const at::Tensor& output_gradient) {
    const AttentionInputs inputs = core.inputs(core.split(saved[0], context));
    const WeightDropout dropout = core.weight_dropout(context);
    if (core.kernel(context) != Kernel::unfused) {
      const FusedAttention result{saved[1], saved[2]};
      return dropout ? blockwise_attention_backward(inputs, result, output_gradient, dropout)
                     : fused_attention_backward(inputs, result, output_gradient);
    }
    if (!core.treatment_.recomputed)
      return unfused_attention_backward(inputs, saved[1], output_gradient, dropout);
    ++core.passes_;
    const MemoryClassScope scope(specs::MemoryClass::recomputation_working_set);
    return unfused_attention_backward(inputs, attention_weights(inputs), output_gradient, dropout);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list gradients) {
    const auto* core = reinterpret_cast<const AttentionCore*>(node->saved_data["core"].toInt());
    const auto* context = reinterpret_cast<const ForwardContext*>(node->saved_data["context"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    const std::int64_t repeats = core->shape_.heads / core->shape_.kv_heads;
    const at::Tensor projected_gradient = at::empty(saved[0].sizes(), saved[0].options());
    const Heads result = core->split(projected_gradient, *context);
    {
      const AttentionInputs found = gradients_of(
          *core, *context, saved,
          gradients[0]
              .reshape({context->sequences, context->length, core->shape_.heads, core->shape_.head_dim})
              .transpose(1, 2));
      result.queries.copy_(found.queries.transpose(1, 2));
      result.keys.copy_(sum_repeats(found.keys, repeats));
      result.values.copy_(sum_repeats(found.values, repeats));
    }
    if (core->rotary_ != nullptr) {
      core->rotary_->rotate(result.queries, -1);
      core->rotary_->rotate(result.keys, -1);
    }
    return {projected_gradient, at::Tensor(), at::Tensor()};
  }
};

at::Tensor AttentionCore::forward(const at::Tensor& projected, const ForwardContext& context) const {
  return Function::apply(projected, this, &context);
}

}  // namespace runtime
