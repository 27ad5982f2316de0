#include "tests/numerics/training_outcome.h"
#include "tests/runtime/pool_fixture.h"

int main(int argc, char** argv) {
  return runtime::run_pool_tests(argc, argv, runtime::numerics::training_jobs());
}
