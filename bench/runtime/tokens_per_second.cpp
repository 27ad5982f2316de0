// One process, optimizer included: tokens per second and the share of the best matrix-product rate that the
// model's FLOPs reach. A step is one micro-batch.
//
//   bench_tokens_per_second [threads=1] [hidden=512] [layers=6] [sequences=8] [steps=5] [precision=fp32]
//                           [clock=wall]
//
// Both precisions where none is given. With clock=cpu all times are the process's on one processor: for one
// thread beside other programs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "bench/runtime/benchmark_model.h"
#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace {

constexpr std::int64_t length = 256;

struct Shape {
  std::int64_t hidden = 512, layers = 6, sequences = 8, steps = 5;
  clockid_t clock = CLOCK_MONOTONIC;
  double tokens() const { return static_cast<double>(sequences * length); }
};

double seconds_on(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_of(clockid_t clock, auto&& work) {
  const double start = seconds_on(clock);
  work();
  return seconds_on(clock) - start;
}

/// Forward and backward: 6 for each weight of a matrix product and token, and 6 · layers · length · width for
/// causal attention (half of the scores), per token.
double model_flops(const specs::ModelSpec& model, double tokens) {
  const auto hidden = static_cast<double>(model.hidden), layers = static_cast<double>(model.layers);
  const double weights = layers * 12 * hidden * hidden + hidden * static_cast<double>(model.vocabulary);
  return (6 * weights + 6 * layers * static_cast<double>(length) * hidden) * tokens;
}

double best_product_rate(at::ScalarType type, clockid_t clock) {
  const at::Tensor a = at::randn({1024, 1024}, type);
  double best = 0;
  for (int i = 0; i < 10; ++i)
    best = std::max(best, 2 * 1024. * 1024 * 1024 / seconds_of(clock, [&] { at::mm(a, a); }));
  return best;
}

runtime::TrainerSpec spec_of(const Shape& shape, specs::Precision precision) {
  runtime::TrainerSpec spec;
  spec.model = bench::gpt(shape.hidden, shape.layers, length);
  spec.training.global_batch = shape.sequences;
  spec.training.sequence_length = length;
  spec.training.precision = precision;
  spec.training.steps = shape.steps + 1;
  specs::RegularPlacement regular;
  regular.micro_batch = shape.sequences;
  spec.placement = specs::regular_placement(regular, spec.model.layers);
  spec.schedule = specs::lower(specs::generate_schedule(regular.schedule, 1, 1, 1));
  return spec;
}

void measure(const Shape& shape, specs::Precision precision) {
  const runtime::TrainerSpec spec = spec_of(shape, precision);
  const runtime::Mesh mesh = runtime::Mesh::single();
  runtime::Trainer trainer(spec, mesh);
  runtime::MicroBatch batch;
  batch.tokens = at::randint(spec.model.vocabulary, {shape.sequences, length}, at::kLong);
  batch.targets = at::randint(spec.model.vocabulary, {shape.sequences, length}, at::kLong);
  trainer.step({batch});
  runtime::reset_peak_tensor_memory();
  const at::ScalarType type = runtime::parameter_type(spec.training);
  double best = 0;
  std::vector<double> seconds;
  for (int i = 0; i < shape.steps; ++i) {
    best = std::max(best, best_product_rate(type, shape.clock));
    seconds.push_back(seconds_of(shape.clock, [&] { trainer.step({batch}); }));
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const double rate = model_flops(spec.model, shape.tokens()) / median;
  std::printf(
      "%s: %.0f tokens/s (spread %.0f to %.0f), %.1f GFLOP/s, %.0f %% of the %.1f GFLOP/s of a 1024^3 "
      "product, peak tensors %.1f MiB\n",
      std::string(specs::name_of(precision)).c_str(), shape.tokens() / median,
      shape.tokens() / seconds.back(), shape.tokens() / seconds.front(), rate * 1e-9, 100 * rate / best,
      best * 1e-9, static_cast<double>(runtime::tensor_memory().peak_bytes) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    given[argument.substr(0, equals)] = equals == std::string::npos ? "" : argument.substr(equals + 1);
  }
  const auto number = [&](const std::string& name, std::int64_t otherwise) {
    return given.contains(name) ? std::atoll(given[name].c_str()) : otherwise;
  };
  runtime::install_counting_allocator();
  at::set_num_threads(static_cast<int>(number("threads", 1)));
  Shape shape;
  shape.hidden = number("hidden", shape.hidden);
  shape.layers = number("layers", shape.layers);
  shape.sequences = number("sequences", shape.sequences);
  shape.steps = number("steps", shape.steps);
  if (given["clock"] == "cpu") shape.clock = CLOCK_PROCESS_CPUTIME_ID;
  for (const specs::Precision precision : {specs::Precision::fp32, specs::Precision::bf16})
    if (!given.contains("precision") || given["precision"] == specs::name_of(precision))
      measure(shape, precision);
}
