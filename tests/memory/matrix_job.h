// One step of a model of at least five million parameters under a placement of the equality matrix: the bytes
// that each rank counts at its peak, and those that the estimate predicts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/monitor/tensor_memory.h"
#include "runtime/worker_pool/worker_pool.h"
#include "specs/language/experiment.h"
#include "tests/numerics/training_case.h"

namespace runtime {

/// The case's kind of model, larger: its placement, its recipe, fp32.
specs::ModelSpec large_model_of(const numerics::TrainingCase& training);
/// On one node of as many CPU devices as ranks.
specs::Experiment experiment_of(const numerics::TrainingCase& training);

using ClassBytes = std::array<std::int64_t, memory_classes>;

WorkerJobs matrix_memory_jobs();

/// Device bytes of each rank at its peak in the first step. A rank that fails throws std::runtime_error.
std::vector<ClassBytes> counted_bytes(WorkerPool& pool, const numerics::TrainingCase& training);

/// Device bytes of each rank that its allocator counts, as the estimate has them.
std::vector<ClassBytes> predicted_bytes(const numerics::TrainingCase& training);

}  // namespace runtime
