// Causal attention of bf16 heads on the processor's matrix registers, without a matrix of scores.
//
// Forward goes through the keys in blocks with a running maximum and sum (Milakov and Gimelshein 2018; Dao et
// al. 2022), backward computes the weights anew from the log-sum-exp. A head is worked on by one thread, in
// an order that depends on its length alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace runtime::kernels {

/// Of one kind of head; tensors are [sequences, heads, length, head_dim], the elements of a head_dim side by
/// side, else strided as they please.
struct TileAttention {
  at::Tensor queries;
  at::Tensor keys;
  at::Tensor values;
};

/// True for bf16 on a processor with the registers.
bool goes_through_tiles(const TileAttention& inputs);

/// Fills output, of the queries' shape, and log_sum_exp [sequences, heads, length], fp32 and contiguous.
/// Scratch for each thread: 4 bytes for each element of a head.
void attend_through_tiles(const TileAttention& inputs, const at::Tensor& output,
                          const at::Tensor& log_sum_exp);

/// Fills `gradients`, of the inputs' shapes. Scratch for each thread: 12 bytes for each element of a head.
void attend_through_tiles_backward(const TileAttention& inputs, const at::Tensor& output,
                                   const at::Tensor& log_sum_exp, const at::Tensor& output_gradient,
                                   const TileAttention& gradients);

}  // namespace runtime::kernels
