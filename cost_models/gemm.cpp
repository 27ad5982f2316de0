#include "cost_models/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cost_models {
namespace {

struct Tile {
  double rows, columns, efficiency;
};

// Tile shapes of cuBLAS and CUTLASS; smaller tiles reuse less of what they load.
constexpr std::array<Tile, 4> tiles{{{256, 128, 1.0}, {128, 128, 0.92}, {128, 64, 0.75}, {64, 64, 0.6}}};

// Elements of output that all multiprocessors would write in the time that whole waves of the best tile take.
double tiled_area(double m, double n, const GemmRates& rates, double groups) {
  double best = 0;
  for (const Tile& tile : tiles) {
    const double count = groups * std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    const double waves = std::ceil(count / rates.multiprocessors);
    const double cost = waves * rates.multiprocessors * tile.rows * tile.columns / tile.efficiency;
    if (best == 0 || cost < best) best = cost;
  }
  return best;
}

double measured_rate(double size, const std::vector<specs::GemmRate>& measured) {
  const specs::GemmRate* below = &measured.front();
  for (const specs::GemmRate& rate : measured) {
    if (static_cast<double>(rate.size) >= size) {
      if (rate.size == below->size) return rate.flops_per_second;
      const double share =
          (size - static_cast<double>(below->size)) / static_cast<double>(rate.size - below->size);
      return below->flops_per_second +
             std::clamp(share, 0.0, 1.0) * (rate.flops_per_second - below->flops_per_second);
    }
    below = &rate;
  }
  return below->flops_per_second;
}

}  // namespace

double gemm_seconds(double m, double n, double k, const GemmRates& rates, double groups) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const double memory =
      groups * rates.bytes_per_element * (m * k + k * n + m * n) / rates.memory_bytes_per_second;
  double compute = 0;
  if (rates.multiprocessors > 0) {
    const double area = tiled_area(m, n, rates, groups);
    compute = 2 * area * (k + rates.depth_half) / rates.flops_per_second;
  } else {
    const double rate =
        rates.measured.empty() ? rates.flops_per_second : measured_rate(std::cbrt(m * n * k), rates.measured);
    compute = groups * 2 * m * n * k / rate;
  }
  const double compute2 = compute * compute;
  const double memory2 = memory * memory;
  return std::sqrt(std::sqrt(compute2 * compute2 + memory2 * memory2));
}

double alignment_share(double width, double odd_share) { return std::fmod(width, 2) == 1 ? odd_share : 1; }

PassSeconds linear_seconds(double tokens, double output, double input, const GemmRates& rates,
                           double groups) {
  const double share = std::min(alignment_share(output, rates.misaligned_factor),
                                alignment_share(input, rates.misaligned_factor));
  const double weight_gradient = gemm_seconds(input, output, tokens, rates, groups) / share;
  return {gemm_seconds(tokens, output, input, rates, groups) / share,
          gemm_seconds(tokens, input, output, rates, groups) / share + weight_gradient, weight_gradient};
}

}  // namespace cost_models
