// A rank's side of a launch: meeting the others, and saying why it gives up.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/comm/rendezvous.h"
#include "runtime/launch/launch_environment.h"
#include "runtime/launch/rank_failure.h"

namespace runtime {

/// Connects to the store of the job, or hosts it where that is this rank's part.
/// Errors: RunError with exit_timeout where rank 0 has not opened it within `timeout`; std::runtime_error
/// where it cannot be opened here.
Rendezvous join(const RankIdentity& identity, std::chrono::milliseconds timeout);

/// Compares a text that must be the same on all ranks (a hash of the plan) with that of rank 0. Returns what
/// rank 0 has where it differs, else an empty string. Blocks until rank 0 has called.
std::string compare_with_rank_zero(const Rendezvous& rendezvous, std::int64_t rank, const std::string& key,
                                   const std::string& value, std::chrono::milliseconds timeout);

/// Waits until all ranks have come to the place that `name` names, once in a run.
/// Error: RunError with exit_timeout, naming the absent ranks, where they have not within `timeout`.
void wait_for_all(const Rendezvous& rendezvous, const std::string& name, const RankIdentity& identity,
                  std::chrono::milliseconds timeout);

/// Tells the others that this rank waits for a peer no longer, gives them `patience` to tell the same, and
/// returns the ranks that have not: those to look at.
std::vector<std::int64_t> silent_ranks(const Rendezvous& rendezvous, const RankIdentity& identity,
                                       std::chrono::milliseconds patience);

/// To the launcher that started this rank, else to standard error as `rank N: error: …`.
void report_failure(std::int64_t rank, const RankFailure& failure);

}  // namespace runtime
