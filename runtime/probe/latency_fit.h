// seconds = latency + bytes / rate, from measured points.
#pragma once

#include <vector>

namespace runtime {

struct TimedTransfer {
  double bytes = 0;
  double seconds = 0;
};

struct LatencyFit {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};

/// Least squares of the relative error, so that small messages count as much as large ones. Where noise would
/// make either negative, the latency is 0 or the rate is that of the largest message. Requires two sizes.
LatencyFit fit_latency(const std::vector<TimedTransfer>& transfers);

}  // namespace runtime
