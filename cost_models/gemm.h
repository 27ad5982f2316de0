// Time of a matrix product: the best of a few tiles with wave quantization, the ramp of the inner dimension,
// and the memory bound.
//
//   compute = min over tiles of waves(tile) · tile area · multiprocessors · 2 k (1 + depth_half / k) / rate /
//   e(tile) waves   = c · (ceil(c) / c)^wave_weight with c = tiles / multiprocessors memory  = bytes · (m k +
//   k n + m n) / bandwidth time    = (compute⁴ + memory⁴)^¼
#pragma once

#include <vector>

#include "specs/language/measured_rates.h"

namespace cost_models {

struct GemmRates {
  double flops_per_second = 0;         ///< dense peak times the efficiency of a large product
  double memory_bytes_per_second = 0;  ///< as streaming kernels reach it
  double multiprocessors = 0;          ///< 0: no tiles (a CPU)
  double depth_half = 0;
  double bytes_per_element = 2;
  double misaligned_factor = 1;  ///< share of the rate that an odd width leaves, see alignment_share
  std::vector<specs::GemmRate>
      measured;  ///< of the training precision, by size; replaces the formula's compute part
};

/// [m, k] × [k, n], `groups` times in one kernel.
double gemm_seconds(double m, double n, double k, const GemmRates& rates, double groups = 1);

/// What of the rate a weight matrix of this width keeps: `odd_share` where the width is odd, so that rows of
/// 16-bit elements begin on 2 bytes and no kernel can load vectors of them.
double alignment_share(double width, double odd_share);

struct PassSeconds {
  double forward = 0;
  double backward = 0;
  double weight_gradient = 0;  ///< part of `backward`
  PassSeconds& operator+=(const PassSeconds& other) {
    forward += other.forward;
    backward += other.backward;
    weight_gradient += other.weight_gradient;
    return *this;
  }
  PassSeconds operator*(double times) const {
    return {times * forward, times * backward, times * weight_gradient};
  }
};

/// A linear layer of `tokens` rows: forward, then input gradient and weight gradient.
PassSeconds linear_seconds(double tokens, double output, double input, const GemmRates& rates,
                           double groups = 1);

}  // namespace cost_models
