#include "tests/runtime/checkpoint/read_bytes_job.h"
#include "tests/runtime/checkpoint/resume_job.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) {
  runtime::WorkerJobs jobs = runtime::resume_jobs();
  jobs.merge(runtime::read_bytes_jobs());
  return runtime::run_pool_tests(argc, argv, jobs);
}
