// Ranks as processes that are started once and do many jobs: what the equality matrix runs on.
//
//   int main(int argc, char** argv) {                       // of the test program
//     const WorkerJobs jobs{{"train", train_job}};
//     if (const auto code = run_as_worker(jobs)) return *code;   // before anything starts a thread
//     …
//     WorkerPool pool(4);
//     std::vector<WorkerResult> results = pool.run("train", request, /*ranks=*/2);
//   }
//
// A worker is this same program executed again. Requests and results are bytes, whatever the job makes of
// them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/process_groups.h"

namespace runtime {

struct WorkerContext {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;  ///< that do this job: 0 … ranks − 1
  ProcessGroups& groups;   ///< of this worker, kept from job to job
};

using WorkerJob = std::function<std::string(WorkerContext& context, const std::string& request)>;
using WorkerJobs = std::map<std::string, WorkerJob>;

struct WorkerResult {
  std::string value;
  std::string error;  ///< of what the job threw; empty where it returned
  bool ok() const { return error.empty(); }
};

/// Serves jobs until the pool ends and returns the exit code, where this process was started as a worker;
/// else nothing.
std::optional<int> run_as_worker(const WorkerJobs& jobs);

class WorkerPool {
 public:
  explicit WorkerPool(std::int64_t workers,
                      std::chrono::milliseconds communication_timeout = std::chrono::seconds(60));
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::int64_t workers() const;

  /// Ranks 0 … ranks − 1 do the job; results in rank order. A worker that fails, dies or exceeds `timeout`
  /// gives an error, and all workers are started anew before the next job.
  std::vector<WorkerResult> run(const std::string& job, const std::string& request, std::int64_t ranks,
                                std::chrono::milliseconds timeout = std::chrono::seconds(120));

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace runtime
