// Training that starts, saves, stops and goes on: a job for the ranks of a pool.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/worker_pool/worker_pool.h"
#include "tests/numerics/training_case.h"

namespace runtime {

struct ResumeRequest {
  numerics::TrainingCase training;
  std::vector<std::filesystem::path> data;         ///< of each rank: text of symbols below the vocabulary
  std::vector<std::filesystem::path> checkpoints;  ///< of each rank
  bool resume = false;
  std::int64_t steps = 0;    ///< to train up to
  std::int64_t save_at = 0;  ///< step; 0: never
  bool reads_alike = false;  ///< a defect: every replica reads what the first does
};

/// All pieces of all ranks put together: bytes of each tensor, in its full shape.
using WholeTensors = std::map<std::string, std::string>;

struct ResumeOutcome {
  std::string error;            ///< of the first rank that threw
  std::int64_t first_step = 1;  ///< after the loaded checkpoint
  std::vector<double> learning_rates;
  std::vector<double> loss_scales;
  std::vector<std::string> samples;  ///< the tokens of the first rank's micro-batches, by step
  std::vector<double> losses;        ///< of the steps trained
  double held_back_loss = 0;         ///< after the last step
  std::vector<std::string> passed_over;
  WholeTensors at_start;  ///< before the first step
  WholeTensors at_end;
  /// Elements that no rank holds, or that two ranks hold with different bytes.
  std::vector<std::string> defects;
};

WorkerJobs resume_jobs();

ResumeOutcome run(WorkerPool& pool, const ResumeRequest& request);

}  // namespace runtime
