#include "cost_models/goodput.h"

#include <cmath>

namespace cost_models {

double mean_seconds_between_failures(double node_failures_per_hour, double nodes) {
  return node_failures_per_hour > 0 ? 3600 / (node_failures_per_hour * nodes) : 0;
}

double best_checkpoint_interval_seconds(double stall_seconds, double mean_seconds_between_failures) {
  return std::sqrt(2 * stall_seconds * mean_seconds_between_failures);
}

double goodput_fraction(double interval_seconds, double stall_seconds, double mean_seconds_between_failures,
                        double restart_seconds) {
  const double checkpoints = interval_seconds > 0 ? stall_seconds / interval_seconds : 0;
  const double failures = mean_seconds_between_failures > 0
                              ? (interval_seconds / 2 + restart_seconds) / mean_seconds_between_failures
                              : 0;
  return 1 / (1 + checkpoints) / (1 + failures);
}

std::int64_t checkpoint_bytes(std::int64_t parameters, double weight_bytes, double optimizer_bytes) {
  return static_cast<std::int64_t>(
      std::llround(static_cast<double>(parameters) * (weight_bytes + optimizer_bytes)));
}

}  // namespace cost_models
