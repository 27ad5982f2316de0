// A checkpoint of one long tensor, each rank's share of it saved and loaded again: a job for the ranks of a
// pool that tells what a load reads and what it holds beside its share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"

namespace runtime {

struct LoadCost {
  std::int64_t read_bytes = 0;  ///< that the rank's load took from files
  std::int64_t held_bytes = 0;  ///< by which the rank's largest resident size grew during the load
  std::int64_t own_bytes = 0;   ///< the rank's share of the tensor
};

WorkerJobs read_bytes_jobs();

/// Each of `ranks` ranks saves an equal share of `elements` fp32 and loads it.
std::vector<LoadCost> save_and_load(WorkerPool& pool, const std::filesystem::path& checkpoints,
                                    std::int64_t ranks, std::int64_t elements);

}  // namespace runtime
