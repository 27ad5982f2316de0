#include "runtime/probe/latency_fit.h"

#include <algorithm>

namespace runtime {

LatencyFit fit_latency(const std::vector<TimedTransfer>& transfers) {
  // Minimise Σ ((a + b x − t) / t)²: weighted normal equations with weights 1 / t².
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const auto& [x, t] : transfers) {
    const double weight = 1 / (t * t);
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wt += weight * t;
    wxt += weight * x * t;
  }
  const double determinant = w * wxx - wx * wx;
  double latency = (wxx * wt - wx * wxt) / determinant;
  double per_byte = (w * wxt - wx * wt) / determinant;
  if (latency < 0) {
    latency = 0;
    per_byte = wxt / wxx;
  }
  if (per_byte <= 0) {
    const auto largest = std::max_element(transfers.begin(), transfers.end(),
                                          [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    per_byte = largest->seconds / largest->bytes;
  }
  return {latency, 1 / per_byte};
}

}  // namespace runtime
