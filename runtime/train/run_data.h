// The data of a run: what the command line names, else the default text.
#pragma once

#include "runtime/data/training_data.h"
#include "runtime/train/run.h"

namespace runtime {

struct RunData {
  std::filesystem::path path;
  TrainingData data;
};

/// Errors: diagnostics where there is none, it cannot be read, or it is too little for one batch.
specs::Result<RunData> open_run_data(const RunOptions& options);

}  // namespace runtime
