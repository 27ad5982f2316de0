// The folder of a run: plan.json, checkpoints/, metrics.jsonl, logs/.
#pragma once

#include <filesystem>

#include "specs/diagnostics/diagnostic.h"

namespace runtime {

struct RunDirectoryUse {
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
};

/// Makes the folder. An earlier run's checkpoints are refused unless the use says what is to become of them;
/// `overwrite` removes what the earlier run wrote, and nothing else.
specs::Diagnostics prepare_run_directory(const std::filesystem::path& run_directory,
                                         const RunDirectoryUse& use);

}  // namespace runtime
