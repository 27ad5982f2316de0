// Trains cases on two pools of ranks and compares them with the single-process runs of the same model.
#pragma once

#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/offload/host_worker.h"
#include "tests/numerics/comparison.h"
#include "tests/numerics/placement_matrix.h"
#include "tests/numerics/reference_runs.h"
#include "tests/numerics/training_outcome.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime::numerics {

/// The ranks, their process groups and the reference runs live until the program ends.
class MatrixTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!pool_) pool_ = std::make_unique<WorkerPool>(most_ranks);
    if (second_pool_) return;
    second_pool_ = std::make_unique<WorkerPool>(most_ranks);
    second_thread_ = std::make_unique<HostWorker>();
  }

  static const TrainingOutcome& reference(const TrainingCase& training, WorkerPool& pool = *pool_) {
    return references_.of(training, pool);
  }

  static Differences differences(const TrainingCase& training, const TrainingOutcome& outcome,
                                 WorkerPool& pool = *pool_) {
    return compare(outcome, reference(training, pool), training.optimizer == specs::OptimizerKind::adamw);
  }

  /// To the single process; in bytes communicated, passes and whole buffers to what the placement says.
  static Differences expect_equal(const TrainingCase& training, WorkerPool& pool = *pool_) {
    const TrainingOutcome outcome = train(pool, training);
    const Differences found = differences(training, outcome, pool);
    const std::string line = describe(training, found);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(within(found, bars_for(training.precision))) << line << "\n " << describe_places(found);
    for (const std::string& defect : outcome.count_defects)
      ADD_FAILURE() << training.name() << ": " << defect;
    return found;
  }

  /// Both pools work through the cases: while the ranks of one wait for each other, the other's run.
  static void for_each_case(const std::vector<TrainingCase>& cases,
                            const std::function<void(std::size_t index, WorkerPool& pool)>& body) {
    std::atomic<std::size_t> next{0};
    const auto work = [&](WorkerPool& pool) {
      for (std::size_t index = next++; index < cases.size(); index = next++) try {
          body(index, pool);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
    };
    second_thread_->submit([&] { work(*second_pool_); });
    work(*pool_);
    second_thread_->wait_for_all();
  }

  /// A line a placement, and the worst of all.
  static void expect_all_equal(const std::vector<TrainingCase>& cases) {
    std::vector<std::optional<Differences>> found(cases.size());
    for_each_case(
        cases, [&](std::size_t index, WorkerPool& pool) { found[index] = expect_equal(cases[index], pool); });
    WorstDifferences worst;
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (found[i]) worst.add(cases[i], *found[i]);
    std::printf("%s", worst.summary().c_str());
  }

  static inline std::unique_ptr<WorkerPool> pool_;
  static inline std::unique_ptr<WorkerPool> second_pool_;
  /// Processes end with the thread that started them: this one stays.
  static inline std::unique_ptr<HostWorker> second_thread_;
  static inline ReferenceRuns references_;
};

}  // namespace runtime::numerics
