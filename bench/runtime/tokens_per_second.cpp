// One process, optimizer included: tokens per second and the share of the best matrix-product rate that the
// model's FLOPs reach, in fp32 and bf16.
//
//   bench_tokens_per_second [threads]      (1 where it is not given)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t sequences = 8;
constexpr std::int64_t length = 256;
constexpr int repetitions = 5;

/// 25 M parameters, hidden 512.
specs::ModelSpec gpt() {
  specs::ModelSpec model;
  model.layers = 6;
  model.hidden = 512;
  model.vocabulary = 8192;
  model.attention.heads = model.attention.kv_heads = 8;
  model.attention.head_dim = 64;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.feed_forward = {2048, false, specs::Activation::gelu_tanh, true};
  model.positions = length;
  return model;
}

double seconds_of(auto&& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Forward and backward: 6 for each weight of a matrix product and token, and 6 · layers · length · width for
/// causal attention (half of the scores), per token.
double model_flops(const specs::ModelSpec& model) {
  const auto hidden = static_cast<double>(model.hidden);
  const double weights = static_cast<double>(model.layers) * (4 * hidden * hidden + 2 * hidden * 2048) +
                         hidden * static_cast<double>(model.vocabulary);
  return (6 * weights + 6 * static_cast<double>(model.layers * length) * hidden) *
         static_cast<double>(sequences * length);
}

double best_product_rate(at::ScalarType type) {
  const at::Tensor a = at::randn({1024, 1024}, type);
  double best = 0;
  for (int i = 0; i < 10; ++i)
    best = std::max(best, 2 * 1024. * 1024 * 1024 / seconds_of([&] { at::mm(a, a); }));
  return best;
}

void measure(specs::Precision precision) {
  runtime::TrainerSpec spec;
  spec.model = gpt();
  spec.training.global_batch = sequences;
  spec.training.sequence_length = length;
  spec.training.precision = precision;
  spec.training.steps = repetitions + 1;
  specs::RegularPlacement regular;
  regular.micro_batch = sequences;
  spec.placement = specs::regular_placement(regular, spec.model.layers);
  spec.schedule = specs::lower(specs::generate_schedule(regular.schedule, 1, 1, 1));
  const runtime::Mesh mesh = runtime::Mesh::single();
  runtime::Trainer trainer(spec, mesh);
  runtime::MicroBatch batch;
  batch.tokens = at::randint(spec.model.vocabulary, {sequences, length}, at::kLong);
  batch.targets = at::randint(spec.model.vocabulary, {sequences, length}, at::kLong);
  trainer.step({batch});
  runtime::reset_peak_tensor_memory();
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) seconds.push_back(seconds_of([&] { trainer.step({batch}); }));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[repetitions / 2];
  const double rate = model_flops(spec.model) / median;
  const double best = best_product_rate(runtime::parameter_type(spec.training));
  std::printf(
      "%s: %.0f tokens/s (spread %.0f to %.0f), %.1f GFLOP/s, %.0f %% of the %.1f GFLOP/s of a 1024^3 "
      "product, peak tensors %.1f MiB\n",
      std::string(specs::name_of(precision)).c_str(), sequences * length / median,
      sequences * length / seconds.back(), sequences * length / seconds.front(), rate * 1e-9,
      100 * rate / best, best * 1e-9, static_cast<double>(runtime::tensor_memory().peak_bytes) / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  runtime::install_counting_allocator();
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  measure(specs::Precision::fp32);
  measure(specs::Precision::bf16);
}
