#include "tests/memory/matrix_job.h"

#include <cstring>
#include <stdexcept>
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

constexpr std::int64_t vocabulary = 4096;
constexpr std::int64_t head_dim = 14;
constexpr std::int64_t hidden = 24 * head_dim;

TrainerSpec trainer_spec_of(const numerics::TrainingCase& training) {
  return {large_model_of(training), numerics::training_of(training), numerics::placement_of(training),
          numerics::schedule_of(training)};
}

std::string count_bytes(WorkerContext& context, const std::string& request) {
  install_counting_allocator();
  const numerics::TrainingCase training = numerics::case_from_bytes(request);
  TrainerSpec spec = trainer_spec_of(training);
  const std::int64_t length = spec.training.sequence_length;
  const Mesh mesh(spec.placement, context.groups);
  Trainer trainer(std::move(spec), mesh, {.overlap_reduction = training.overlap_reduction, .faults = {}});
  std::vector<MicroBatch> batches;
  for (std::int64_t i = 0; i < training.micro_batches; ++i) {
    MicroBatch batch;
    batch.tokens = at::randint(vocabulary, {training.micro_batch(), length}, at::kLong);
    batch.targets = at::randint(vocabulary, {training.micro_batch(), length}, at::kLong);
    batches.push_back(std::move(batch));
  }
  reset_peak_tensor_memory();
  trainer.step(batches);
  const TensorMemory counted = tensor_memory();
  return {reinterpret_cast<const char*>(counted.bytes_at_peak.data()), sizeof(ClassBytes)};
}

bool is_counted(const specs::MemoryEntry& entry) {
  return entry.location == specs::MemoryLocation::device &&
         entry.memory_class != specs::MemoryClass::communicator_buffers &&
         entry.memory_class != specs::MemoryClass::framework_context &&
         entry.memory_class != specs::MemoryClass::allocator_slack;
}

}  // namespace

specs::ModelSpec large_model_of(const numerics::TrainingCase& training) {
  specs::ModelSpec model = numerics::model_of(training);
  model.vocabulary = vocabulary;
  model.hidden = hidden;
  model.attention.head_dim = head_dim;
  model.feed_forward.hidden = model.feed_forward.gated ? 1152 : 4 * hidden;
  return model;
}

specs::Experiment experiment_of(const numerics::TrainingCase& training) {
  specs::Experiment experiment = cost_models::testing::experiment(
      large_model_of(training), 1, numerics::TrainingCase::global_batch, training.sequence_length, "dsrun");
  experiment.training = numerics::training_of(training);
  experiment.cluster.groups.front().node.device.generation = "cpu";
  return experiment;
}

WorkerJobs matrix_memory_jobs() { return {{"matrix_memory", count_bytes}}; }

std::vector<ClassBytes> counted_bytes(WorkerPool& pool, const numerics::TrainingCase& training) {
  std::vector<ClassBytes> ranks;
  for (const WorkerResult& result :
       pool.run("matrix_memory", numerics::to_bytes(training), training.ranks())) {
    if (!result.ok())
      throw std::runtime_error(fmt::format("{}: rank {}: {}", training.name(), ranks.size(), result.error));
    ClassBytes bytes{};
    std::memcpy(bytes.data(), result.value.data(), sizeof bytes);
    ranks.push_back(bytes);
  }
  return ranks;
}

std::vector<ClassBytes> predicted_bytes(const numerics::TrainingCase& training) {
  const specs::Placement placement = numerics::placement_of(training);
  const specs::CostBreakdown cost = cost_models::Estimator(experiment_of(training)).estimate(placement);
  std::vector<ClassBytes> ranks(static_cast<std::size_t>(placement.world_size()));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const specs::MemoryEntry& entry : cost.memory)
      if (is_counted(entry) &&
          entry.pipeline_rank == *specs::pipeline_rank_of(placement, static_cast<std::int64_t>(rank)))
        ranks[rank][static_cast<std::size_t>(entry.memory_class)] += entry.bytes;
  return ranks;
}

}  // namespace runtime
