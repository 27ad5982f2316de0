// What the ranks of the communicator tests do.
#pragma once

#include "runtime/worker_pool/worker_pool.h"

namespace runtime {

WorkerJobs communicator_jobs();

}  // namespace runtime
