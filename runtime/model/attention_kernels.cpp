#include "runtime/model/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "runtime/kernels/tile_attention.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

constexpr std::int64_t block_queries = 64;

double scale_of(const at::Tensor& queries) { return 1 / std::sqrt(static_cast<double>(queries.size(3))); }

at::ScalarType wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// Scaled scores of queries first … first + rows against keys 0 … first + rows, in `type`; those of later
/// keys are −∞.
at::Tensor causal_scores(const AttentionInputs& inputs, std::int64_t first, std::int64_t rows,
                         at::ScalarType type) {
  const at::Tensor scores = at::matmul(inputs.queries.narrow(2, first, rows),
                                       inputs.keys.narrow(2, 0, first + rows).transpose(2, 3))
                                .to(type)
                                .mul_(scale_of(inputs.queries));
  const at::Tensor later = at::ones({rows, rows}, at::kBool).triu_(1);
  scores.narrow(3, first, rows).masked_fill_(later, -std::numeric_limits<double>::infinity());
  return scores;
}

/// Calls body(first, rows) for each block of queries.
template <class Body>
void for_blocks(std::int64_t length, Body body) {
  for (std::int64_t first = 0; first < length; first += block_queries)
    body(first, std::min(block_queries, length - first));
}

/// The heads of a token side by side.
FusedAttention empty_result(const at::Tensor& queries) {
  const std::int64_t sequences = queries.size(0), heads = queries.size(1), length = queries.size(2);
  return {at::empty({sequences, length, heads, queries.size(3)}, queries.options()).transpose(1, 2),
          at::empty({sequences, heads, length}, queries.options().dtype(wide(queries)))};
}

/// For fp16: LibTorch's kernel would pack keys and values of all heads anew, in blocks of 64.
bool goes_by_heads(const AttentionInputs& inputs) { return inputs.queries.scalar_type() == at::kHalf; }

/// Calls body(sequence, head) for each head, outside of autograd.
template <class Body>
void for_heads(const at::Tensor& queries, Body body) {
  const std::int64_t heads = queries.size(1);
  at::parallel_for(0, queries.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoDispatchBelowAutograd outside;
    const MemoryClassScope scope(specs::MemoryClass::workspace);
    for (std::int64_t i = begin; i < end; ++i) body(i / heads, i % heads);
  });
}

/// [1, 1, length, head_dim] in fp32.
at::Tensor widened_head(const at::Tensor& tensor, std::int64_t sequence, std::int64_t head) {
  return tensor[sequence][head].to(at::kFloat).unsqueeze(0).unsqueeze(0);
}

AttentionInputs widened_head(const AttentionInputs& inputs, std::int64_t sequence, std::int64_t head) {
  return {widened_head(inputs.queries, sequence, head), widened_head(inputs.keys, sequence, head),
          widened_head(inputs.values, sequence, head)};
}

kernels::TileAttention on_tiles(const AttentionInputs& inputs) {
  return {inputs.queries, inputs.keys, inputs.values};
}

}  // namespace

FusedAttention fused_attention(const AttentionInputs& inputs) {
  if (const auto tiles = on_tiles(inputs); kernels::goes_through_tiles(tiles)) {
    const FusedAttention result = empty_result(inputs.queries);
    kernels::attend_through_tiles(tiles, result.output, result.log_sum_exp);
    return result;
  }
  if (goes_by_heads(inputs)) {
    const FusedAttention result = empty_result(inputs.queries);
    for_heads(inputs.queries, [&](std::int64_t sequence, std::int64_t head) {
      const FusedAttention wide = fused_attention(widened_head(inputs, sequence, head));
      result.output[sequence][head].copy_(wide.output[0][0]);
      result.log_sum_exp[sequence][head].copy_(wide.log_sum_exp[0][0]);
    });
    return result;
  }
  const auto [output, log_sum_exp] =
      at::_scaled_dot_product_flash_attention_for_cpu(inputs.queries, inputs.keys, inputs.values, 0.0, true);
  return {output, log_sum_exp};
}

AttentionInputs fused_attention_backward(const AttentionInputs& inputs, const FusedAttention& forward,
                                         const at::Tensor& output_gradient) {
  if (const auto tiles = on_tiles(inputs); kernels::goes_through_tiles(tiles)) {
    const AttentionInputs result{at::empty_like(inputs.queries), at::empty_like(inputs.keys),
                                 at::empty_like(inputs.values)};
    const at::Tensor gradient =
        output_gradient.stride(3) == 1 ? output_gradient : output_gradient.contiguous();
    kernels::attend_through_tiles_backward(tiles, forward.output, forward.log_sum_exp, gradient,
                                           on_tiles(result));
    return result;
  }
  if (goes_by_heads(inputs)) {
    const AttentionInputs result{at::empty_like(inputs.queries), at::empty_like(inputs.keys),
                                 at::empty_like(inputs.values)};
    for_heads(inputs.queries, [&](std::int64_t sequence, std::int64_t head) {
      const FusedAttention wide{widened_head(forward.output, sequence, head),
                                forward.log_sum_exp[sequence][head].unsqueeze(0).unsqueeze(0)};
      const AttentionInputs gradients = fused_attention_backward(
          widened_head(inputs, sequence, head), wide, widened_head(output_gradient, sequence, head));
      result.queries[sequence][head].copy_(gradients.queries[0][0]);
      result.keys[sequence][head].copy_(gradients.keys[0][0]);
      result.values[sequence][head].copy_(gradients.values[0][0]);
    });
    return result;
  }
  const auto [queries, keys, values] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      output_gradient, inputs.queries, inputs.keys, inputs.values, forward.output, forward.log_sum_exp, 0.0,
      true);
  return {queries, keys, values};
}

FusedAttention blockwise_attention(const AttentionInputs& inputs, const WeightDropout& dropout) {
  const at::Tensor& q = inputs.queries;
  const FusedAttention result = empty_result(q);
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  for_blocks(q.size(2), [&](std::int64_t first, std::int64_t rows) {
    const at::Tensor scores = causal_scores(inputs, first, rows, wide(q));
    const at::Tensor log_sum = scores.logsumexp(-1);
    result.log_sum_exp.narrow(2, first, rows).copy_(log_sum);
    scores.sub_(log_sum.unsqueeze(-1)).exp_();
    if (dropout) dropout(scores, first);
    result.output.narrow(2, first, rows)
        .copy_(at::matmul(scores.to(q.scalar_type()), inputs.values.narrow(2, 0, first + rows)));
  });
  return result;
}

AttentionInputs blockwise_attention_backward(const AttentionInputs& inputs, const FusedAttention& forward,
                                             const at::Tensor& output_gradient,
                                             const WeightDropout& dropout) {
  const at::Tensor& q = inputs.queries;
  const at::ScalarType type = q.scalar_type();
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  const AttentionInputs result{at::empty(q.sizes(), q.options()),
                               at::zeros(q.sizes(), q.options().dtype(wide(q))),
                               at::zeros(q.sizes(), q.options().dtype(wide(q)))};
  for_blocks(q.size(2), [&](std::int64_t first, std::int64_t rows) {
    const std::int64_t keys = first + rows;
    const at::Tensor gradient = output_gradient.narrow(2, first, rows);
    const at::Tensor weights = causal_scores(inputs, first, rows, wide(q))
                                   .sub_(forward.log_sum_exp.narrow(2, first, rows).unsqueeze(-1))
                                   .exp_();
    at::Tensor dropped = weights;
    at::Tensor weight_gradient =
        at::matmul(gradient, inputs.values.narrow(2, 0, keys).transpose(2, 3)).to(wide(q));
    if (dropout) {
      dropped = weights.clone();
      dropout(dropped, first);
      dropout(weight_gradient, first);
    }
    result.values.narrow(2, 0, keys).add_(at::matmul(dropped.to(type).transpose(2, 3), gradient));
    // Σ weight · gradient over the keys is the output times its gradient.
    const at::Tensor sums =
        gradient.to(wide(q)).mul(forward.output.narrow(2, first, rows).to(wide(q))).sum(-1, /*keepdim=*/true);
    const at::Tensor score_gradient = weight_gradient.sub_(sums).mul_(weights).mul_(scale_of(q)).to(type);
    result.queries.narrow(2, first, rows).copy_(at::matmul(score_gradient, inputs.keys.narrow(2, 0, keys)));
    result.keys.narrow(2, 0, keys).add_(at::matmul(score_gradient.transpose(2, 3), q.narrow(2, first, rows)));
  });
  return {result.queries, result.keys.to(type), result.values.to(type)};
}

at::Tensor attention_weights(const AttentionInputs& inputs) {
  const at::Tensor scores = causal_scores(inputs, 0, inputs.queries.size(2), inputs.queries.scalar_type());
  at::_softmax_out(const_cast<at::Tensor&>(scores), scores, -1, false);
  return scores;
}

at::Tensor unfused_attention(const at::Tensor& weights, const at::Tensor& values,
                             const WeightDropout& dropout) {
  if (!dropout) return at::matmul(weights, values);
  at::Tensor dropped;
  {
    const MemoryClassScope scope(specs::MemoryClass::workspace);
    dropped = weights.clone();
  }
  dropout(dropped, 0);
  return at::matmul(dropped, values);
}

AttentionInputs unfused_attention_backward(const AttentionInputs& inputs, const at::Tensor& weights,
                                           const at::Tensor& output_gradient, const WeightDropout& dropout) {
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  AttentionInputs result;
  {
    at::Tensor dropped = weights;
    if (dropout) {
      dropped = weights.clone();
      dropout(dropped, 0);
    }
    result.values = at::matmul(dropped.transpose(2, 3), output_gradient);
  }
  at::Tensor gradient = at::matmul(output_gradient, inputs.values.transpose(2, 3));
  if (dropout) dropout(gradient, 0);
  at::_softmax_backward_data_out(gradient, gradient, weights, -1, weights.scalar_type());
  gradient.mul_(scale_of(inputs.queries));
  result.queries = at::matmul(gradient, inputs.keys);
  result.keys = at::matmul(gradient.transpose(2, 3), inputs.queries);
  return result;
}

}  // namespace runtime
