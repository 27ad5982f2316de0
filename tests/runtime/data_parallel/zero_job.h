// One training step whose every event, byte and buffer is counted: a job for the ranks of a pool.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"
#include "tests/numerics/training_case.h"

namespace runtime {

/// What one rank saw during the second step of a run.
struct CountedStep {
  /// In order: "forward U", "backward U" (a unit's pass begins), "reduce B" (a bucket's reduction is
  /// launched).
  std::vector<std::string> events;
  /// Wire bytes by "group operation dtype".
  std::map<std::string, double> wire_bytes;
  /// "group operation" and the bytes of the payload of each call, in order.
  std::vector<std::pair<std::string, std::int64_t>> messages;
  std::int64_t peak_whole_buckets = 0;
  std::int64_t peak_gathered_units = 0;
  std::int64_t gathers = 0;
  std::int64_t whole_gradients_left = 0;   ///< buckets that hold them after the step
  std::int64_t whole_parameters_left = 0;  ///< likewise
  std::vector<std::int64_t> bucket_elements;
  std::vector<std::int64_t> bucket_units;
  std::map<std::string, std::int64_t> peak_bytes;  ///< the most of each memory class, whenever that was
  std::int64_t most_travelling = 0;                ///< reductions under way when an action begins
  double loss = 0;
  double gradient_norm = 0;
};

WorkerJobs zero_jobs();

/// Of all ranks of the case.
std::vector<CountedStep> count_step(WorkerPool& pool, const numerics::TrainingCase& training);

}  // namespace runtime
