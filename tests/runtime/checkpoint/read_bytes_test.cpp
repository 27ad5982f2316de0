// deepspeedai/DeepSpeed pull request 1525: eight ranks of a node that each read all 256 shards of 525 MB need
// a terabyte of host memory. A rank of this runtime reads its share of the checksums and its share of the
// data.
#include <gtest/gtest.h>

#include "tests/runtime/checkpoint/read_bytes_job.h"
#include "tests/runtime/pool_fixture.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

class ReadBytes : public PoolFixture<8> {};

TEST_F(ReadBytes, ARankReadsItsOwnShareOnceToCheckAndOnceToLoadAndHoldsNoMore) {
  const tests::TemporaryFolder folder;
  constexpr std::int64_t elements = 8 * (std::int64_t{4} << 20);
  const std::vector<LoadCost> costs = save_and_load(*pool_, folder.path() / "checkpoints", 8, elements);
  ASSERT_EQ(costs.size(), 8u);
  for (const LoadCost& cost : costs) {
    const auto own = static_cast<double>(cost.own_bytes);
    EXPECT_EQ(cost.own_bytes, elements * 4 / 8);
    EXPECT_NEAR(static_cast<double>(cost.read_bytes), 2 * own, 0.01 * 2 * own);
    EXPECT_LT(static_cast<double>(cost.held_bytes), own / 2) << "one buffer beside the share itself";
  }
}

}  // namespace
}  // namespace runtime
