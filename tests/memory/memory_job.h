// A model large enough that its buffers show, trained for two steps under one sharding: a job for the ranks
// of a pool, and the same as an experiment for the cost model.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/worker_pool/worker_pool.h"
#include "specs/language/experiment.h"
#include "specs/plan/placement.h"

namespace runtime {

struct MemoryCase {
  bool llama = false;       ///< untied, else GPT with a tied table
  std::int64_t tensor = 1;  ///< with sequence parallelism
  std::int64_t data = 2;
  std::int64_t zero_stage = 0;
  std::int64_t prefetch_units = 1;
  std::int64_t kept_units = 0;
  std::int64_t bucket_bytes = 1 << 20;
  std::int64_t accumulation = 2;
  std::int64_t vocabulary = 4096;
  bool bf16 = false;
  bool recomputation = false;

  std::string name() const;
};

specs::Experiment experiment_of(const MemoryCase& memory_case);
specs::Placement placement_of(const MemoryCase& memory_case);

WorkerJobs memory_jobs();

/// Bytes of each class at the peak of the second step, the worst of the ranks; "total" is their sum.
std::map<std::string, double> peak_bytes(WorkerPool& pool, const MemoryCase& memory_case);

}  // namespace runtime
