#include "cost_models/attention_kernel.h"

#include <algorithm>
#include <cmath>

namespace cost_models {
namespace {

double square_flops(const AttentionWork& work) {
  return 2 * work.sequences * work.query_tokens * work.key_tokens * work.heads *
         (work.query_key_dim + work.value_dim);
}

}  // namespace

double causal_share(double length, double window) {
  if (window <= 0 || window >= length) return 0.5;
  const double ratio = window / length;
  return ratio - ratio * ratio / 2;
}

PassSeconds flash_attention_seconds(const AttentionWork& work, double share, const AttentionRates& rates) {
  // Small heads leave the tensor cores waiting for the exponentials; normalised to 1 at head size 128.
  const double head = work.value_dim;
  const double head_factor = head / (head + 32) * (128 + 32) / 128;
  const double wide_key_factor = work.query_key_dim > work.value_dim ? 0.9 : 1.0;
  const double efficiency = rates.flash_efficiency * head_factor * wide_key_factor;
  const double context = 1 + rates.context_loss * (1 - 1 / work.context_ranks);
  PassSeconds seconds;
  seconds.forward = share * square_flops(work) / (rates.peak_flops_per_second * efficiency) * context;
  seconds.backward = seconds.forward * 2.5 * rates.flash_backward_factor;
  return seconds;
}

PassSeconds unfused_attention_seconds(const AttentionWork& work, const AttentionRates& rates) {
  const bool aligned = std::fmod(work.query_key_dim, 8) == 0;
  const double rate = rates.unfused_flops_per_second * (aligned ? 1 : rates.misaligned_factor);
  const double depth = 1 + 64 / work.query_key_dim;
  const double flops_seconds = square_flops(work) / rate * depth;
  const double scores = work.sequences * work.heads * work.query_tokens * work.key_tokens;
  const double score_seconds = rates.unfused_traffic * scores / rates.memory_bytes_per_second;
  constexpr double forward_bytes = 2 + 2 + 4 + 5 + 2;  // scale, mask, softmax, dropout with its mask, re-read
  constexpr double backward_bytes = 4 + 5 + 4 + 4 + 6;
  return {flops_seconds + forward_bytes * score_seconds, 2 * flops_seconds + backward_bytes * score_seconds};
}

}  // namespace cost_models
