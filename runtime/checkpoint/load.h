// Reading the newest whole checkpoint, written under whatever placement.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/tensor_piece.h"
#include "runtime/checkpoint/training_state.h"
#include "runtime/comm/communicator.h"

namespace runtime {

struct LoadedCheckpoint {
  TrainingState state;
  std::filesystem::path folder;
  std::vector<std::string> passed_over;  ///< newer ones and why each was not taken, one line each
};

/// Collective over `world`. Fills `pieces` from the newest checkpoint that is whole on every rank: sizes and
/// checksums agree with its manifest, and every element is there. Each rank reads the byte ranges it needs.
/// Folders named *.tmp are never looked at. Nothing where there is no checkpoint at all.
/// Errors: CheckpointMismatch where the newest whole one is of another model, optimizer or precision;
/// CheckpointError where there are some but none can be taken, with the reason for each; the contents
/// of `pieces` are then undefined.
std::optional<LoadedCheckpoint> load_newest_checkpoint(const std::filesystem::path& checkpoints,
                                                       const std::vector<TensorPiece>& pieces,
                                                       const Communicator& world);

}  // namespace runtime
