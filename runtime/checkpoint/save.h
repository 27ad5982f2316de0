// Writing a checkpoint: each rank its own file, all ranks or none.
//
//   checkpoints/step_20.tmp/rank_00000.safetensors …   written and brought to the device
//   checkpoints/step_20.tmp/manifest.json              once all ranks have said that theirs is done
//   checkpoints/step_20/                               renamed once all of that has succeeded everywhere
//   checkpoints/latest                                 "step_20", replaced last
//
// Ranks may share the folder, or each host (or rank) may have one of its own: which ranks share it is seen,
// not assumed. Where they do, a part that several ranks hold is written once; each folder has a manifest of
// what lies in it, and the lowest rank that sees it renames it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/checkpoint/tensor_piece.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/comm/communicator.h"

namespace runtime {

struct SavedCheckpoint {
  std::filesystem::path folder;
  std::int64_t bytes = 0;  ///< that all ranks wrote
};

/// Collective over `world`. Errors: CheckpointError on every rank, with the reason of the first that failed
/// (a full disk, say); then nothing is renamed and what was written is removed.
SavedCheckpoint save_checkpoint(const std::filesystem::path& checkpoints, const TrainingState& state,
                                const std::vector<TensorPiece>& pieces, const Communicator& world);

/// "step_20".
std::string checkpoint_name(std::int64_t step);

}  // namespace runtime
