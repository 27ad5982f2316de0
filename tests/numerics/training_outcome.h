// What a training run gave, gathered from all its ranks and put together by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"
#include "tests/numerics/training_case.h"

namespace runtime::numerics {

using Tensors = std::map<std::string, std::vector<double>>;  ///< flat, full shape, without padding

struct TrainingOutcome {
  std::vector<double> losses;
  std::vector<double> gradient_norms;
  std::vector<double> learning_rates;
  std::vector<double> loss_scales;  ///< that each step used
  Tensors gradients;                ///< of the first step, before clipping
  Tensors weights;                  ///< after the last step
  /// Elements that no rank gave, or ranks that hold copies of an element and disagree in any bit.
  std::vector<std::string> defects;
};

/// The job of the ranks, by the name "train".
WorkerJobs training_jobs();

/// Runs the case on ranks 0 … of the pool. A rank that fails throws std::runtime_error.
TrainingOutcome train(WorkerPool& pool, const TrainingCase& training);

}  // namespace runtime::numerics
