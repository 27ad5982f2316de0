#include "runtime/data/sampler.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(Sampler, GivesEachSampleOncePerEpochInAnotherOrderEachTime) {
  const Sampler sampler(97, true, 5);
  std::vector<std::vector<std::int64_t>> epochs(3);
  for (std::int64_t place = 0; place < 3 * 97; ++place)
    epochs[static_cast<std::size_t>(place / 97)].push_back(sampler.sample(place));
  for (const auto& epoch : epochs) EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 97);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(Sampler, GoesFromFirstToLastWithoutShuffle) {
  const Sampler sampler(5, false, 5);
  for (std::int64_t place = 0; place < 12; ++place) EXPECT_EQ(sampler.sample(place), place % 5);
}

TEST(Sampler, OrderFollowsTheSeed) {
  std::vector<std::int64_t> one, other;
  for (std::int64_t place = 0; place < 50; ++place) {
    one.push_back(Sampler(50, true, 1).sample(place));
    other.push_back(Sampler(50, true, 2).sample(place));
  }
  EXPECT_NE(one, other);
}

specs::Placement placement_of(std::int64_t micro_batch, std::int64_t accumulation) {
  specs::Placement placement;
  placement.micro_batch = micro_batch;
  placement.accumulation = accumulation;
  return placement;
}

TEST(ReplicaSlice, TilesTheGlobalBatchWithEqualShares) {
  const specs::Placement placement = placement_of(2, 3);
  for (std::int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(replica_slice(placement, rank), (ReplicaSlice{6 * rank, 3}));
}

TEST(ReplicaSlice, TilesTheGlobalBatchWithUnequalShares) {
  specs::Placement placement = placement_of(2, 1);
  placement.replica_shares = {{2, 3, 0}, {1, 1, 0}, {2, 2, 0}};
  EXPECT_EQ(replica_slice(placement, 0), (ReplicaSlice{0, 3}));
  EXPECT_EQ(replica_slice(placement, 1), (ReplicaSlice{6, 3}));
  EXPECT_EQ(replica_slice(placement, 2), (ReplicaSlice{12, 1}));
  EXPECT_EQ(replica_slice(placement, 3), (ReplicaSlice{14, 2}));
  EXPECT_EQ(replica_slice(placement, 4), (ReplicaSlice{18, 2}));
}

}  // namespace
}  // namespace runtime
