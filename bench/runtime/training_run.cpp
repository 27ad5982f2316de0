// Two ranks train the model of python_training.py, as the counterpart of one of its modes; bench/vs_python
// starts it.
//
//   bench_training_run ddp|fsdp2|pipeline fp32|bf16
//
// Prints, for each rank, seconds a step (median) and peak memory above the value after start-up as one line
// of JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include "bench/runtime/benchmark_model.h"
#include "runtime/mesh/mesh.h"
#include "runtime/train/trainer.h"
#include "runtime/worker_pool/worker_pool.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t ranks = 2, sequences = 16, length = 256, pipeline_micro_batches = 4;
constexpr int warm_up = 1, steps = 3;

/// ddp: whole gradients reduced; fsdp2: parameters, gradients and states sharded; pipeline: 1F1B, tables
/// untied.
runtime::TrainerSpec spec_of(const std::string& mode, const std::string& precision) {
  const bool pipeline = mode == "pipeline";
  runtime::TrainerSpec spec;
  spec.model = bench::gpt(512, 6, length, /*tied=*/!pipeline);
  spec.training.global_batch = sequences;
  spec.training.sequence_length = length;
  spec.training.precision = precision == "bf16" ? specs::Precision::bf16 : specs::Precision::fp32;
  spec.training.gradient_clip = 0;
  spec.training.steps = 100;
  specs::RegularPlacement regular;
  regular.pipeline = pipeline ? ranks : 1;
  regular.data = pipeline ? 1 : ranks;
  regular.micro_batch = pipeline ? sequences / pipeline_micro_batches : sequences / ranks;
  regular.accumulation = pipeline ? pipeline_micro_batches : 1;
  regular.zero.stage = mode == "fsdp2" ? 3 : 0;
  regular.buckets.gradient_bucket_bytes = 25 << 20;  // DistributedDataParallel's
  spec.placement = specs::regular_placement(regular, spec.model.layers);
  specs::LoweringOptions options;
  options.tied_embeddings = spec.model.tied_embeddings;
  options.zero_stage = regular.zero.stage;
  spec.schedule =
      specs::lower(specs::generate_schedule(regular.schedule, static_cast<std::int32_t>(regular.pipeline), 1,
                                            static_cast<std::int32_t>(regular.accumulation)),
                   options);
  return spec;
}

std::int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return 1024 * std::stoll(line.substr(field.size() + 1));
  return 0;
}

std::vector<runtime::MicroBatch> batches_of(const runtime::TrainerSpec& spec, std::int64_t replica) {
  const std::int64_t size =
      spec.placement.stages.size() > 1 ? sequences / pipeline_micro_batches : sequences / ranks;
  const std::int64_t count = spec.placement.stages.size() > 1 ? pipeline_micro_batches : 1;
  std::vector<runtime::MicroBatch> batches;
  for (std::int64_t index = 0; index < count; ++index)
    batches.push_back({at::randint(spec.model.vocabulary, {size, length}, at::kLong),
                       at::randint(spec.model.vocabulary, {size, length}, at::kLong),
                       (replica * count + index) * size});
  return batches;
}

std::string train(runtime::WorkerContext& context, const std::string& request) {
  at::set_num_threads(1);
  const std::size_t space = request.find(' ');
  runtime::TrainerSpec spec = spec_of(request.substr(0, space), request.substr(space + 1));
  if (const auto refusals = runtime::training_refusals(spec); !refusals.empty())
    throw std::runtime_error(refusals.front());
  const runtime::Mesh mesh(spec.placement, context.groups);
  const at::Tensor signal = at::zeros({1});
  mesh.world().all_reduce(signal);
  const std::int64_t start_bytes = status_bytes("VmRSS");
  std::ofstream("/proc/self/clear_refs") << 5;
  const std::vector<runtime::MicroBatch> batches = batches_of(spec, mesh.coordinates().data);
  runtime::Trainer trainer(std::move(spec), mesh);
  std::vector<double> seconds;
  for (int step = 0; step < warm_up + steps; ++step) {
    const auto begin = Clock::now();
    trainer.step(batches);
    mesh.world().all_reduce(signal);
    if (step >= warm_up) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  static_assert(steps % 2 == 1, "the median is one of the steps");
  return "{\"seconds\": " + std::to_string(seconds[steps / 2]) +
         ", \"peak_bytes\": " + std::to_string(status_bytes("VmHWM") - start_bytes) + "}";
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = runtime::run_as_worker({{"train", train}})) return *code;
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_training_run ddp|fsdp2|pipeline fp32|bf16\n");
    return 2;
  }
  runtime::WorkerPool pool(ranks, std::chrono::minutes(10));
  for (const runtime::WorkerResult& result :
       pool.run("train", std::string(argv[1]) + " " + argv[2], ranks, std::chrono::minutes(10))) {
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.error.c_str());
      return 1;
    }
    std::printf("%s\n", result.value.c_str());
  }
}
