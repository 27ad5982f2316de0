#include "runtime/train/run_directory.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace runtime {
namespace {

/// Why nothing can be written into a folder; empty where it can. Tried, since permissions do not tell of
/// read-only file systems or of quotas.
std::string unwritable(const std::filesystem::path& folder) {
  std::string name = (folder / ".dsrun-XXXXXX").string();
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) return std::generic_category().message(errno);
  close(descriptor);
  unlink(name.c_str());
  return {};
}

}  // namespace

RunDirectoryLock::~RunDirectoryLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool RunDirectoryLock::take(const std::filesystem::path& run_directory) {
  const int descriptor = open(run_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(descriptor);
    return false;
  }
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
  return true;
}

specs::Diagnostics prepare_run_directory(const std::filesystem::path& run_directory,
                                         const RunDirectoryUse& use, RunDirectoryLock* lock) {
  specs::Diagnostics diagnostics;
  const specs::SourcePosition position{.file = run_directory.string()};
  std::error_code error;
  std::filesystem::create_directories(run_directory, error);
  if (error) {
    diagnostics.error(position, "cannot make the run folder: " + error.message(),
                      "give another with --run-dir");
    return diagnostics;
  }
  for (const std::filesystem::path& folder :
       {run_directory, run_directory / "logs", run_directory / "checkpoints"}) {
    if (!std::filesystem::exists(folder, error)) continue;
    if (const std::string why = unwritable(folder); !why.empty())
      diagnostics.error({.file = folder.string()}, "cannot write into this folder: " + why,
                        "give another with --run-dir, or make it writable");
  }
  if (diagnostics.has_errors()) return diagnostics;
  if (lock != nullptr && !use.dry_run && !lock->take(run_directory)) {
    diagnostics.error(position, "another run is writing into this folder",
                      "wait for its end, or give another with --run-dir");
    return diagnostics;
  }
  const std::filesystem::path checkpoints = run_directory / "checkpoints";
  const bool used =
      std::filesystem::exists(checkpoints, error) && !std::filesystem::is_empty(checkpoints, error);
  if (!used || use.resume || use.dry_run) return diagnostics;
  if (!use.overwrite) {
    diagnostics.error(
        position, "the folder holds the checkpoints of an earlier run",
        "continue it with --resume, begin anew with --overwrite, or give another with --run-dir");
    return diagnostics;
  }
  for (const char* name : {"checkpoints", "logs", "metrics.jsonl"}) {
    std::filesystem::remove_all(run_directory / name, error);
    if (error)
      diagnostics.error(position,
                        fmt::format("cannot remove {} of the earlier run: {}", name, error.message()));
  }
  return diagnostics;
}

}  // namespace runtime
