// What a training run gave, gathered from all its ranks and put together by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"
#include "tests/numerics/expected_traffic.h"
#include "tests/numerics/expected_work.h"
#include "tests/numerics/training_case.h"

namespace runtime::numerics {

using Tensors = std::map<std::string, std::vector<double>>;  ///< flat, full shape, without padding
/// Of each tensor the runs of elements by the rank that gave them: first element → rank.
using Givers = std::map<std::string, std::map<std::size_t, std::int64_t>>;

struct TrainingOutcome {
  std::vector<double> losses;
  std::vector<double> gradient_norms;
  std::vector<double> learning_rates;
  std::vector<double> loss_scales;  ///< that each step used
  Tensors gradients;                ///< of the first step, before clipping
  Tensors weights;                  ///< after the last step
  Givers gradient_givers;
  Givers weight_givers;
  std::vector<RankTraffic> traffic;  ///< by rank
  /// Elements that no rank gave, or ranks that hold copies of an element and disagree in any bit.
  std::vector<std::string> defects;
  /// Bytes that a rank communicated and should not, or the reverse; passes and whole buffers likewise.
  std::vector<std::string> count_defects;
};

/// The job of the ranks, by the name "train".
WorkerJobs training_jobs();

/// Runs the case on ranks 0 … of the pool. A rank that fails throws std::runtime_error.
TrainingOutcome train(WorkerPool& pool, const TrainingCase& training);

}  // namespace runtime::numerics
