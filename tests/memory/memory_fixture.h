// The bytes that ranks count at their peak against the estimate's.
#pragma once

#include <vector>

#include "tests/memory/memory_job.h"
#include "tests/numerics/placement_matrix.h"
#include "tests/runtime/pool_fixture.h"

namespace runtime {

class MemoryTest : public PoolFixture<numerics::most_ranks> {
 protected:
  /// On every rank, of the device's memory and the host's: the total within 3 %, each class above 5 % of it
  /// within 5 %, and what is held throughout a step within 0.1 % of the total. Prints the worst, one a line.
  static void expect_all_predicted(const std::vector<MemoryCase>& cases);
};

}  // namespace runtime
