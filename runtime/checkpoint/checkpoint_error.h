// A checkpoint that cannot be written or read: a full disk, a failed write, a broken file.
#pragma once

#include <stdexcept>

namespace runtime {

/// Thrown on all ranks alike, with the first failing rank's reason.
class CheckpointError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A whole checkpoint of another model, optimizer or precision: the user's mistake, not the storage's. Thrown
/// on all ranks alike.
class CheckpointMismatch : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace runtime
