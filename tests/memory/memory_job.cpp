#include "tests/memory/memory_job.h"

#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "runtime/mesh/mesh.h"
#include "runtime/train/trainer.h"
#include "specs/plan/rank_mapping.h"
#include "tests/cost_models/model_fixtures.h"

namespace runtime {

namespace {

constexpr std::int64_t head_dim = 14;
constexpr std::int64_t hidden = 24 * head_dim;

static_assert(std::is_trivially_copyable_v<MemoryCase> && std::is_trivially_copyable_v<RankBytes>);

std::string count_bytes(WorkerContext& context, const std::string& request) {
  install_counting_allocator();
  MemoryCase memory_case;
  std::memcpy(static_cast<void*>(&memory_case), request.data(), sizeof memory_case);
  const numerics::TrainingCase& training = memory_case.training;
  TrainerSpec spec{model_of(memory_case), numerics::training_of(training), numerics::placement_of(training),
                   numerics::schedule_of(training)};
  const std::int64_t length = spec.training.sequence_length;
  const Mesh mesh(spec.placement, context.groups);
  Trainer trainer(std::move(spec), mesh, {.overlap_reduction = training.overlap_reduction, .faults = {}});
  std::vector<MicroBatch> batches;
  for (std::int64_t i = 0; i < training.micro_batches; ++i) {
    MicroBatch batch;
    batch.tokens = at::randint(memory_case.vocabulary, {training.micro_batch(), length}, at::kLong);
    batch.targets = at::randint(memory_case.vocabulary, {training.micro_batch(), length}, at::kLong);
    batches.push_back(std::move(batch));
  }
  reset_peak_tensor_memory();
  trainer.step(batches);
  const TensorMemory counted = tensor_memory();
  const RankBytes bytes{counted.bytes_at_peak, counted.host.bytes_at_peak};
  return {reinterpret_cast<const char*>(&bytes), sizeof bytes};
}

/// Where the allocator of the ranks counts it; null for what it does not see.
ClassBytes* counted_with(RankBytes& bytes, const specs::MemoryEntry& entry) {
  if (entry.memory_class == specs::MemoryClass::communicator_buffers ||
      entry.memory_class == specs::MemoryClass::framework_context ||
      entry.memory_class == specs::MemoryClass::allocator_slack)
    return nullptr;
  if (entry.location == specs::MemoryLocation::device) return &bytes.device;
  return entry.location == specs::MemoryLocation::nvme ? nullptr : &bytes.host;
}

}  // namespace

std::string MemoryCase::name() const { return fmt::format("{} vocabulary {}", training.name(), vocabulary); }

specs::ModelSpec model_of(const MemoryCase& memory_case) {
  specs::ModelSpec model = numerics::model_of(memory_case.training);
  model.vocabulary = memory_case.vocabulary;
  model.hidden = hidden;
  model.attention.head_dim = head_dim;
  model.feed_forward.hidden = model.feed_forward.gated ? 1152 : 4 * hidden;
  return model;
}

specs::Experiment experiment_of(const MemoryCase& memory_case) {
  const numerics::TrainingCase& training = memory_case.training;
  specs::Experiment experiment = cost_models::testing::experiment(
      model_of(memory_case), 1, numerics::TrainingCase::global_batch, training.sequence_length, "dsrun");
  experiment.training = numerics::training_of(training);
  experiment.cluster.groups.front().node.device.generation = "cpu";
  return experiment;
}

WorkerJobs memory_jobs() { return {{"memory", count_bytes}}; }

std::vector<RankBytes> counted_bytes(WorkerPool& pool, const MemoryCase& memory_case) {
  const std::string request(reinterpret_cast<const char*>(&memory_case), sizeof memory_case);
  std::vector<RankBytes> ranks;
  for (const WorkerResult& result : pool.run("memory", request, memory_case.training.ranks())) {
    if (!result.ok())
      throw std::runtime_error(
          fmt::format("{}: rank {}: {}", memory_case.name(), ranks.size(), result.error));
    std::memcpy(&ranks.emplace_back(), result.value.data(), sizeof(RankBytes));
  }
  return ranks;
}

std::vector<RankBytes> predicted_bytes(const MemoryCase& memory_case) {
  const specs::Placement placement = numerics::placement_of(memory_case.training);
  const specs::CostBreakdown cost = cost_models::Estimator(experiment_of(memory_case)).estimate(placement);
  std::vector<RankBytes> ranks(static_cast<std::size_t>(placement.world_size()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const specs::MemoryEntry& entry : cost.memory) {
      if (entry.pipeline_rank != *specs::pipeline_rank_of(placement, static_cast<std::int64_t>(rank)))
        continue;
      if (ClassBytes* const bytes = counted_with(ranks[rank], entry))
        (*bytes)[static_cast<std::size_t>(entry.memory_class)] += entry.bytes;
    }
  return ranks;
}

}  // namespace runtime
