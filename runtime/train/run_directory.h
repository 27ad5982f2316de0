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

/// Keeps other runs out of a run folder while it lives; the system lets go of it however the process ends.
/// Folders whose file system knows no locks are free to all.
class RunDirectoryLock {
 public:
  RunDirectoryLock() = default;
  RunDirectoryLock(const RunDirectoryLock&) = delete;
  RunDirectoryLock& operator=(const RunDirectoryLock&) = delete;
  ~RunDirectoryLock();

  /// False where another run has it.
  bool take(const std::filesystem::path& run_directory);

 private:
  int descriptor_ = -1;
};

/// Makes the folder. An earlier run's checkpoints are refused unless the use says what is to become of them;
/// `overwrite` removes what the earlier run wrote, and nothing else. With a lock, a folder that another run
/// has is refused first; a dry run takes none.
specs::Diagnostics prepare_run_directory(const std::filesystem::path& run_directory,
                                         const RunDirectoryUse& use, RunDirectoryLock* lock = nullptr);

}  // namespace runtime
