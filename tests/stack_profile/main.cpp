#include "tests/runtime/pool_fixture.h"
#include "tests/stack_profile/plan_job.h"

int main(int argc, char** argv) { return runtime::run_pool_tests(argc, argv, runtime::plan_jobs()); }
