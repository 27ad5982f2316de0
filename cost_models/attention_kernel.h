// Time of core attention: scores, softmax and context, without the projections.
#pragma once

#include "cost_models/gemm.h"

namespace cost_models {

struct AttentionWork {
  double sequences = 1;     ///< micro-batch
  double query_tokens = 0;  ///< of one sequence on this rank (sequence length / context ranks)
  double key_tokens = 0;    ///< that a query may see, before the causal mask
  double heads = 0;         ///< on this rank
  double query_key_dim = 0;
  double value_dim = 0;
  double context_ranks = 1;
};

struct AttentionRates {
  double peak_flops_per_second = 0;     ///< dense 16-bit peak of the device
  double flash_efficiency = 0;          ///< of that peak, forward, at head size 128
  double flash_backward_factor = 1;     ///< backward time per FLOP relative to forward
  double unfused_flops_per_second = 0;  ///< batched products of the unfused form
  double misaligned_factor = 1;         ///< where the head size is not a multiple of 8
  double unfused_traffic = 1;
  double memory_bytes_per_second = 0;
  double context_loss = 0;
};

/// Share of the keys that a causal mask with a sliding window of `window` tokens leaves, in a sequence of
/// `length`: 1/2 without a window, w/s − w²/(2 s²) with one.
double causal_share(double length, double window);

/// One fused kernel. With F = 2 · sequences · queries · keys · heads · (d_qk + d_v) FLOPs before the mask,
/// forward = share · F / (peak · efficiency · d/(d + 32) · 5/4), backward 2.5 times the FLOPs.
PassSeconds flash_attention_seconds(const AttentionWork& work, double share, const AttentionRates& rates);

/// Separate kernels: batched products over the whole square, and the traffic of scale, mask, softmax and
/// dropout, 15 bytes a score forward and 23 backward.
PassSeconds unfused_attention_seconds(const AttentionWork& work, const AttentionRates& rates);

}  // namespace cost_models
