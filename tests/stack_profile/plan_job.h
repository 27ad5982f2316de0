// A plan.json executed for a few steps by the ranks of a pool, on tokens that depend on the global batch
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"

namespace runtime {

WorkerJobs plan_jobs();

/// The losses of three steps of `plan_text`, which is what a plan.json holds and needs `ranks`. A plan that
/// is refused, or a rank that fails, throws std::runtime_error.
std::vector<double> losses_of_plan(WorkerPool& pool, const std::string& plan_text, std::int64_t ranks);

}  // namespace runtime
