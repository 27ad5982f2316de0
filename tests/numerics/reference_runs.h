// The single-process runs that placements are compared with, each made once.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <string>

#include "tests/numerics/training_outcome.h"

namespace runtime::numerics {

/// The same model and recipe in one process, the whole batch at once.
TrainingCase single_process(const TrainingCase& training);

/// May be asked by several threads at a time, each with its own pool.
class ReferenceRuns {
 public:
  const TrainingOutcome& of(const TrainingCase& training, WorkerPool& pool);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<TrainingOutcome>> runs_;
};

}  // namespace runtime::numerics
