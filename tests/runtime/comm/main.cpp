#include "tests/runtime/comm/communicator_jobs.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) { return runtime::run_pool_tests(argc, argv, runtime::communicator_jobs()); }
