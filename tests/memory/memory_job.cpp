#include "tests/memory/memory_job.h"

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include <ATen/ops/randint.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"
#include "tests/cost_models/model_fixtures.h"

namespace runtime {

namespace {

constexpr std::int64_t layers = 4;
constexpr std::int64_t hidden = 256;
constexpr std::int64_t length = 128;

static_assert(std::is_trivially_copyable_v<MemoryCase>);

std::string run_measured(WorkerContext& context, const std::string& request) {
  install_counting_allocator();
  MemoryCase memory_case;
  std::memcpy(&memory_case, request.data(), sizeof memory_case);
  const specs::Experiment experiment = experiment_of(memory_case);
  TrainerSpec spec{experiment.model, experiment.training, placement_of(memory_case), {}};
  specs::LoweringOptions lowering;
  lowering.zero_stage = memory_case.zero_stage;
  spec.schedule = specs::lower(specs::generate_schedule(spec.placement.schedule, 1, 1,
                                                        static_cast<std::int32_t>(memory_case.accumulation)),
                               lowering);
  const Mesh mesh(spec.placement, context.groups);
  Trainer trainer(std::move(spec), mesh);
  std::vector<MicroBatch> batches;
  for (std::int64_t i = 0; i < memory_case.accumulation; ++i)
    batches.push_back({at::randint(memory_case.vocabulary, {1, length}, at::kLong),
                       at::randint(memory_case.vocabulary, {1, length}, at::kLong), i});
  trainer.step(batches);
  reset_peak_tensor_memory();
  trainer.step(batches);
  const TensorMemory memory = tensor_memory();
  nlohmann::json bytes;
  for (const auto& [memory_class, name] : specs::EnumNames<specs::MemoryClass>::names)
    bytes[std::string(name)] = memory.at_peak(memory_class);
  bytes["total"] = memory.peak_bytes;
  return bytes.dump();
}

}  // namespace

std::string MemoryCase::name() const {
  return fmt::format("{} tp{} dp{} z{} prefetch{} keep{} bucket{} x{} v{}{}{}", llama ? "llama" : "gpt",
                     tensor, data, zero_stage, prefetch_units, kept_units, bucket_bytes, accumulation,
                     vocabulary, bf16 ? " bf16" : "", recomputation ? " recompute" : "");
}

specs::Experiment experiment_of(const MemoryCase& memory_case) {
  specs::ModelSpec model =
      memory_case.llama ? cost_models::testing::llama(layers, hidden, 8, 4, 704, memory_case.vocabulary)
                        : cost_models::testing::gpt(layers, hidden, 8, memory_case.vocabulary, length);
  const std::int64_t batch = memory_case.data * memory_case.accumulation;
  specs::Experiment experiment =
      cost_models::testing::experiment(std::move(model), 1, batch, length, "dsrun");
  experiment.training.precision = memory_case.bf16 ? specs::Precision::bf16 : specs::Precision::fp32;
  experiment.training.gradient_precision = specs::Precision::fp32;
  experiment.cluster.groups.front().node.device.generation = "cpu";
  return experiment;
}

specs::Placement placement_of(const MemoryCase& memory_case) {
  specs::RegularPlacement regular;
  regular.tensor = memory_case.tensor;
  regular.sequence_parallel = memory_case.tensor > 1;
  regular.data = memory_case.data;
  regular.accumulation = memory_case.accumulation;
  regular.zero.stage = memory_case.zero_stage;
  regular.zero.kept_units = memory_case.kept_units;
  regular.buckets.gradient_bucket_bytes = regular.buckets.gather_bucket_bytes = memory_case.bucket_bytes;
  regular.buckets.prefetch_units = memory_case.prefetch_units;
  if (memory_case.recomputation) regular.recomputation = specs::Recomputation::full;
  return specs::regular_placement(regular, layers);
}

WorkerJobs memory_jobs() { return {{"memory", run_measured}}; }

std::map<std::string, double> peak_bytes(WorkerPool& pool, const MemoryCase& memory_case) {
  const std::string request(reinterpret_cast<const char*>(&memory_case), sizeof memory_case);
  std::map<std::string, double> worst;
  for (const WorkerResult& result : pool.run("memory", request, memory_case.tensor * memory_case.data)) {
    if (!result.ok()) throw std::runtime_error(memory_case.name() + ": " + result.error);
    const auto bytes = nlohmann::json::parse(result.value).get<std::map<std::string, double>>();
    if (worst.empty() || bytes.at("total") > worst.at("total")) worst = bytes;
  }
  return worst;
}

}  // namespace runtime
