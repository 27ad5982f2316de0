#include "tests/memory/matrix_job.h"
#include "tests/memory/memory_job.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) {
  runtime::WorkerJobs jobs = runtime::memory_jobs();
  jobs.merge(runtime::matrix_memory_jobs());
  return runtime::run_pool_tests(argc, argv, jobs);
}
