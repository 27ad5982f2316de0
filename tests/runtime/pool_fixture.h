// One pool of ranks for all tests of a program. A program that uses it has a main of its own, which calls
// `run_pool_tests` with its jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/worker_pool/worker_pool.h"

namespace runtime {

/// main of a program whose ranks are this program itself, started again.
inline int run_pool_tests(int argc, char** argv, const WorkerJobs& jobs) {
  if (const auto code = run_as_worker(jobs)) return *code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

template <std::int64_t workers>
class PoolFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() { pool_ = std::make_unique<WorkerPool>(workers); }
  static void TearDownTestSuite() { pool_.reset(); }

  /// What each rank returned; a rank that failed fails the test.
  static std::vector<std::string> values(const std::string& job, const std::string& request,
                                         std::int64_t ranks) {
    std::vector<std::string> values;
    for (const WorkerResult& result : pool_->run(job, request, ranks)) {
      EXPECT_TRUE(result.ok()) << result.error;
      values.push_back(result.value);
    }
    return values;
  }

  static inline std::unique_ptr<WorkerPool> pool_;
};

}  // namespace runtime
