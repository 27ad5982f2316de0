// One step of a model of at least five million parameters under a placement of the equality matrix: the bytes
// that each rank counts at its peak, and those that the estimate predicts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/monitor/tensor_memory.h"
#include "runtime/worker_pool/worker_pool.h"
#include "specs/language/experiment.h"
#include "tests/numerics/training_case.h"

namespace runtime {

/// The case's kind of model, larger: its placement and its recipe.
struct MemoryCase {
  numerics::TrainingCase training;
  std::int64_t vocabulary = 4096;

  std::string name() const;
};

specs::ModelSpec model_of(const MemoryCase& memory_case);
/// On one node of as many CPU devices as ranks.
specs::Experiment experiment_of(const MemoryCase& memory_case);

using ClassBytes = std::array<std::int64_t, memory_classes>;

struct RankBytes {
  ClassBytes device{};
  ClassBytes host{};
};

WorkerJobs memory_jobs();

/// Of each rank at the peak of either memory in the first step. A rank that fails throws std::runtime_error.
std::vector<RankBytes> counted_bytes(WorkerPool& pool, const MemoryCase& memory_case);

/// Of each rank what its allocator counts, as the estimate has it.
std::vector<RankBytes> predicted_bytes(const MemoryCase& memory_case);

}  // namespace runtime
