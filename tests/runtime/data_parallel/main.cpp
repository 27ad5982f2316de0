#include "tests/runtime/data_parallel/memory_job.h"
#include "tests/runtime/data_parallel/zero_job.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) {
  runtime::WorkerJobs jobs = runtime::zero_jobs();
  jobs.merge(runtime::memory_jobs());
  return runtime::run_pool_tests(argc, argv, jobs);
}
