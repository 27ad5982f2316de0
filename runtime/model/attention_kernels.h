// The arithmetic of causal attention, outside of autograd, three ways. All tensors are
// [sequences, heads, length, head_dim]; keys and values have a head for each query head.
//
//   fused      a flash kernel without dropout: for bf16 on the processor's matrix registers, where it has
//              them, else LibTorch's; for fp16 a head at a time in fp32.
//   blockwise  the same with dropout: blocks of queries, one at a time, against the keys before them.
//   unfused    whole matrices of scores; what is kept of them is the softmax.
//
// Fused and blockwise keep the output and one log-sum-exp for each query (fp32, or fp64 for fp64), and
// compute the weights anew in backward.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace runtime {

struct AttentionInputs {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

/// Drops attention weights in place: `weights` [sequences, heads, queries, keys], contiguous, holds those of
/// queries first_query … against keys 0 …. Empty: nothing is dropped.
using WeightDropout = std::function<void(const at::Tensor& weights, std::int64_t first_query)>;

struct FusedAttention {
  at::Tensor output;
  at::Tensor log_sum_exp;  ///< [sequences, heads, length]
};

FusedAttention fused_attention(const AttentionInputs& inputs);
FusedAttention blockwise_attention(const AttentionInputs& inputs, const WeightDropout& dropout);
AttentionInputs fused_attention_backward(const AttentionInputs& inputs, const FusedAttention& forward,
                                         const at::Tensor& output_gradient);
AttentionInputs blockwise_attention_backward(const AttentionInputs& inputs, const FusedAttention& forward,
                                             const at::Tensor& output_gradient, const WeightDropout& dropout);

/// The softmax of the scores [sequences, heads, length, length], before dropout.
at::Tensor attention_weights(const AttentionInputs& inputs);
at::Tensor unfused_attention(const at::Tensor& weights, const at::Tensor& values,
                             const WeightDropout& dropout);
AttentionInputs unfused_attention_backward(const AttentionInputs& inputs, const at::Tensor& weights,
                                           const at::Tensor& output_gradient, const WeightDropout& dropout);

}  // namespace runtime
