#include "runtime/model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/ops/empty.h>

#include "runtime/kernels/rotary_kernels.h"

namespace runtime {

std::vector<double> rotary_frequencies(const specs::RotarySpec& spec, std::int64_t head_dim) {
  const auto rotated = static_cast<std::int64_t>(std::llround(spec.fraction * static_cast<double>(head_dim)));
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < rotated / 2; ++i) {
    double frequency = std::pow(spec.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
    if (spec.scaling == "linear") frequency /= spec.scaling_factor;
    if (spec.scaling == "llama3") {
      const double turns = static_cast<double>(spec.original_positions) * frequency / (2 * std::numbers::pi);
      const double share = std::clamp(
          (turns - spec.low_frequency_factor) / (spec.high_frequency_factor - spec.low_frequency_factor), 0.0,
          1.0);
      frequency *= share + (1 - share) / spec.scaling_factor;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

RotaryTable::RotaryTable(const specs::RotarySpec& spec, std::int64_t head_dim, std::int64_t length,
                         at::ScalarType type) {
  const std::vector<double> frequencies = rotary_frequencies(spec, head_dim);
  const auto half = static_cast<std::int64_t>(frequencies.size());
  const at::Tensor angles = at::empty({length, half}, at::kDouble);
  auto* out = angles.data_ptr<double>();
  for (std::int64_t position = 0; position < length; ++position)
    for (std::int64_t i = 0; i < half; ++i)
      out[position * half + i] = static_cast<double>(position) * frequencies[static_cast<std::size_t>(i)];
  const at::ScalarType table = type == at::kDouble ? at::kDouble : at::kFloat;
  cosine_ = angles.cos().to(table);
  sine_ = angles.sin().to(table);
}

void RotaryTable::rotate(const at::Tensor& heads, int direction) const {
  kernels::rotate_heads(heads, cosine_, sine_, direction);
}

}  // namespace runtime
