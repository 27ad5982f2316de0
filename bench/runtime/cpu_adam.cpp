// The optimizer's update on the CPU against the memory's own rate: the bandwidth of AdamW (28 bytes a
// parameter: weight and two moments read and written, the gradient read) as a share of STREAM's (McCalpin
// 1995; the best of copy, scale, add and triad, counted as there), both on arrays far larger than the caches,
// measured in turns.
//
//   bench_cpu_adam [threads]      (1 where it is not given)
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "runtime/optimizer/update_kernels.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t doubles = std::int64_t{1} << 25;     // three arrays of 256 MiB
constexpr std::int64_t parameters = std::int64_t{1} << 25;  // four arrays of 128 MiB
constexpr double bytes_per_parameter = 28;
constexpr int rounds = 7;

double seconds_of(auto&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Bytes a second of each of the four kernels.
std::array<double, 4> stream(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  double* const pa = a.data_ptr<double>();
  double* const pb = b.data_ptr<double>();
  double* const pc = c.data_ptr<double>();
  const auto rate = [&](double bytes, auto kernel) {
    return bytes * static_cast<double>(doubles) /
           seconds_of([&] { at::parallel_for(0, doubles, 1 << 16, kernel); });
  };
  return {
      rate(16, [=](std::int64_t i, std::int64_t end) { std::copy(pa + i, pa + end, pc + i); }),
      rate(16,
           [=](std::int64_t i, std::int64_t end) {
             for (; i < end; ++i) pb[i] = 3 * pc[i];
           }),
      rate(24,
           [=](std::int64_t i, std::int64_t end) {
             for (; i < end; ++i) pc[i] = pa[i] + pb[i];
           }),
      rate(24,
           [=](std::int64_t i, std::int64_t end) {
             for (; i < end; ++i) pa[i] = pb[i] + 3 * pc[i];
           }),
  };
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const at::Tensor a = at::full({doubles}, 1.0, at::kDouble), b = a.clone(), c = a.clone();
  const at::Tensor weight = at::full({parameters}, 0.1), gradient = at::full({parameters}, 1e-3);
  const at::Tensor first = at::zeros({parameters}), second = at::zeros({parameters});
  std::array<double, 4> best{};
  const std::vector<runtime::InstructionSet>& sets = runtime::instruction_sets();
  std::vector<double> adam(sets.size());
  runtime::UpdateFactors factors;
  factors.learning_rate = 1e-4, factors.weight_decay = 0.1;
  for (int round = 0; round < rounds; ++round) {
    const std::array<double, 4> rates = stream(a, b, c);
    for (std::size_t i = 0; i < rates.size(); ++i) best[i] = std::max(best[i], rates[i]);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const double seconds =
          seconds_of([&] { runtime::update_adamw(weight, first, second, gradient, factors, sets[i]); });
      adam[i] = std::max(adam[i], bytes_per_parameter * static_cast<double>(parameters) / seconds);
      ++factors.step;
    }
  }
  const double memory = *std::max_element(best.begin(), best.end());
  std::printf("STREAM on %d threads: copy %.1f, scale %.1f, add %.1f, triad %.1f GB/s\n",
              at::get_num_threads(), best[0] * 1e-9, best[1] * 1e-9, best[2] * 1e-9, best[3] * 1e-9);
  for (std::size_t i = 0; i < sets.size(); ++i)
    std::printf("AdamW %-8s  %.1f GB/s, %.0f %% of STREAM\n", std::string(specs::name_of(sets[i])).c_str(),
                adam[i] * 1e-9, 100 * adam[i] / memory);
}
