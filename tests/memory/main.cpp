#include "tests/memory/memory_job.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) { return runtime::run_pool_tests(argc, argv, runtime::memory_jobs()); }
