#include "runtime/probe/latency_fit.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(LatencyFit, FindsLatencyAndRateOfExactPoints) {
  const LatencyFit fit =
      fit_latency({{1e4, 1e-4 + 1e4 / 2e9}, {1e5, 1e-4 + 1e5 / 2e9}, {1e7, 1e-4 + 1e7 / 2e9}});
  EXPECT_NEAR(fit.latency_seconds, 1e-4, 1e-9);
  EXPECT_NEAR(fit.bytes_per_second / 2e9, 1, 1e-6);
}

TEST(LatencyFit, NoisyPointsNeverGiveANegativeLatencyOrRate) {
  const LatencyFit no_latency = fit_latency({{1e4, 1e-7}, {1e5, 5e-5}, {1e6, 1e-3}});
  EXPECT_GE(no_latency.latency_seconds, 0);
  EXPECT_GT(no_latency.bytes_per_second, 0);
  const LatencyFit falling = fit_latency({{1e4, 1e-3}, {1e6, 1e-4}});
  EXPECT_GE(falling.latency_seconds, 0);
  EXPECT_GT(falling.bytes_per_second, 0);
}

}  // namespace
}  // namespace runtime
