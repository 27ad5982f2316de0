#include "runtime/model/initialization.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include "runtime/model/counter_random.h"

namespace runtime {

namespace {

struct TwoNumbers {
  double even, odd;
};

/// Standard normal numbers 2 · `pair` and 2 · `pair` + 1 of the stream `key`, by the Box-Muller transform.
TwoNumbers normal_numbers(std::uint64_t key, std::uint64_t pair) {
  const RandomBlock bits = philox(key, 0, pair);
  constexpr double scale = 0x1p-53;
  const std::uint64_t first = (std::uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  const std::uint64_t second = (std::uint64_t{bits[2]} << 32 | bits[3]) >> 11;
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(first) + 0.5) * scale));
  const double angle = 2 * std::numbers::pi * static_cast<double>(second) * scale;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Position in the full tensor of element `local` of the box.
std::int64_t global_index(const ParameterSpec& spec, std::int64_t local) {
  if (spec.global_shape.size() == 1) return spec.box.offset[0] + local;
  const std::int64_t columns = spec.box.extent[1];
  const std::int64_t row = spec.box.offset[0] + local / columns;
  return row * spec.global_shape[1] + spec.box.offset[1] + local % columns;
}

/// Of the row of the box that element `local` stands in, from there on.
std::int64_t left_of_row(const ParameterSpec& spec, std::int64_t local) {
  const std::int64_t columns = spec.box.extent.back();
  return columns - local % columns;
}

/// output[i] = `deviation` × number `index` + i of the stream `key`.
template <class Real>
void fill_run(std::uint64_t key, std::uint64_t index, double deviation, Real* output, std::int64_t count) {
  std::int64_t i = 0;
  if (index % 2 == 1) output[i++] = static_cast<Real>(deviation * normal_numbers(key, index / 2).odd);
  for (; i < count; i += 2) {
    const TwoNumbers numbers = normal_numbers(key, (index + static_cast<std::uint64_t>(i)) / 2);
    output[i] = static_cast<Real>(deviation * numbers.even);
    if (i + 1 < count) output[i + 1] = static_cast<Real>(deviation * numbers.odd);
  }
}

template <class Real>
void fill_normal(const ParameterSpec& spec, std::uint64_t seed, std::int64_t begin, std::int64_t valid,
                 Real* output, std::int64_t count) {
  const std::uint64_t key = random_key(seed, spec.name);
  const std::int64_t filled = std::clamp<std::int64_t>(valid - begin, 0, count);
  std::fill(output + filled, output + count, Real(0));
  at::parallel_for(0, filled, 4096, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last;) {
      const std::int64_t run = std::min(last - i, left_of_row(spec, begin + i));
      fill_run(key, static_cast<std::uint64_t>(global_index(spec, begin + i)), spec.initial_deviation,
               output + i, run);
      i += run;
    }
  });
}

}  // namespace

void fill_initial(const ParameterSpec& spec, std::uint64_t seed, std::int64_t begin, at::Tensor output) {
  const std::int64_t count = output.numel();
  std::int64_t valid = 1;
  for (const std::int64_t extent : spec.box.extent) valid *= extent;
  if (spec.initial != InitialValue::normal) {
    output.fill_(spec.initial == InitialValue::ones ? 1.0 : 0.0);
    if (begin + count > valid)
      output
          .narrow(0, std::max<std::int64_t>(valid - begin, 0),
                  count - std::max<std::int64_t>(valid - begin, 0))
          .zero_();
    return;
  }
  if (output.scalar_type() == at::kDouble)
    fill_normal(spec, seed, begin, valid, output.data_ptr<double>(), count);
  else
    fill_normal(spec, seed, begin, valid, output.data_ptr<float>(), count);
}

}  // namespace runtime
