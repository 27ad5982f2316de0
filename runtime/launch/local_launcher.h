// Starts all ranks of a job on this machine and answers for them.
//
// Each rank is this program again, told by variables as torchrun would tell it who it is; the launcher hosts
// the rendezvous on a free port. Standard output of rank 0 passes through; every other line is printed whole
// with `rank N: ` before it. When a rank fails, the others are ended within seconds and the error of the
// first that failed by itself is printed, once. On SIGINT or SIGTERM all ranks are ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace runtime {

struct LocalLaunch {
  std::vector<std::string> arguments;  ///< of every rank, after the program's name
  std::int64_t ranks = 1;
  std::int64_t threads_per_rank = 0;      ///< of the math libraries; 0: cores / ranks, at least 1
  std::chrono::milliseconds grace{3000};  ///< between asking a rank to end and killing it
};

/// Returns the exit code of the job: 0, the first failing rank's own, 10 where a rank was killed, or
/// 128 + signal. Call from the main thread.
int run_local(const LocalLaunch& launch);

/// Descriptor on which a rank started by `run_local` tells why it fails, or −1.
int failure_channel();

}  // namespace runtime
