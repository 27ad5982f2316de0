#include "runtime/offload/host_worker.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(HostWorker, DoesJobsInOrderAndWaitsForThose) {
  HostWorker worker;
  std::vector<int> done;
  std::atomic<int> count = 0;
  std::int64_t third = 0;
  for (int job = 1; job <= 5; ++job) {
    const std::int64_t number = worker.submit([&, job] {
      done.push_back(job);
      ++count;
    });
    if (job == 3) third = number;
  }
  worker.wait_for(third);
  EXPECT_GE(count, 3);
  worker.wait_for_all();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(worker.submitted(), 5);
}

TEST(HostWorker, AFailureIsThrownWhereItIsWaitedForAndNothingIsDoneAfterIt) {
  HostWorker worker;
  std::atomic<int> done = 0;
  worker.submit([&] { ++done; });
  worker.submit([] { throw std::runtime_error("a rank is gone"); });
  worker.submit([&] { ++done; });
  EXPECT_THROW(worker.wait_for_all(), std::runtime_error);
  EXPECT_EQ(done, 1);
}

TEST(HostWorker, EndsWithWhatWasSubmitted) {
  int done = 0;
  {
    HostWorker worker;
    for (int job = 0; job < 100; ++job) worker.submit([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace runtime
