// How dsrun ends.
#pragma once

namespace runtime {

enum ExitCode : int {
  exit_done = 0,
  exit_bad_input = 2,
  exit_internal = 3,
  exit_rank_died = 10,
  exit_timeout = 11,     ///< a rank did not arrive at a collective
  exit_non_finite = 12,  ///< or the loss scale is at its floor
  exit_storage = 13,     ///< a checkpoint or log cannot be written or read
  exit_signal_base = 128,
};

}  // namespace runtime
