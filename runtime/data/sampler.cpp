#include "runtime/data/sampler.h"

#include <algorithm>

#include "runtime/data/permutation.h"
#include "runtime/model/counter_random.h"

namespace runtime {

std::int64_t Sampler::sample(std::int64_t place) const {
  const std::int64_t epoch = place / samples_;
  const std::int64_t index = place % samples_;
  if (!shuffle_) return index;
  const std::uint64_t key = random_key(seed_, "data") + static_cast<std::uint64_t>(epoch);
  return Permutation(samples_, key)(index);
}

ReplicaSlice replica_slice(const specs::Placement& placement, std::int64_t data_rank) {
  if (placement.replica_shares.empty())
    return {data_rank * placement.accumulation * placement.micro_batch, placement.accumulation};
  ReplicaSlice slice;
  std::int64_t before = data_rank;  // replicas whose places come first
  for (const specs::ReplicaShare& share : placement.replica_shares) {
    slice.micro_batches = share.micro_batches;
    slice.first_place += std::min(before, share.replicas) * share.micro_batches * placement.micro_batch;
    if (before < share.replicas) break;
    before -= share.replicas;
  }
  return slice;
}

}  // namespace runtime
