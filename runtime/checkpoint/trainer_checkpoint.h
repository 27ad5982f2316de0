// A trainer's checkpoints: what is saved of it, and how it goes on from there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/checkpoint/load.h"
#include "runtime/checkpoint/save.h"
#include "runtime/train/trainer.h"

namespace runtime {

/// Where in the run a trainer stands.
struct TrainingProgress {
  std::int64_t step = 0;              ///< done
  std::int64_t consumed_samples = 0;  ///< sequences
  std::string plan_hash;
};

/// Collective over the trainer's mesh, between two steps. Errors as `save_checkpoint`.
SavedCheckpoint save_trainer(const std::filesystem::path& checkpoints, Trainer& trainer,
                             const TrainingProgress& progress);

/// Collective, before the first step: the trainer becomes what it was when the newest whole checkpoint was
/// written, whatever the placement was. Nothing where there is none. Errors as `load_newest_checkpoint`.
std::optional<LoadedCheckpoint> resume_trainer(const std::filesystem::path& checkpoints, Trainer& trainer);

}  // namespace runtime
