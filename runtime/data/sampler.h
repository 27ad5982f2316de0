// Which training sample comes at which place, and which places belong to which rank.
#pragma once

#include <cstdint>

#include "specs/plan/placement.h"

namespace runtime {

/// The endless sequence of training samples: epoch after epoch, each sample once in each. A pure function of
/// (seed, place): independent of the placement, and resumed from the number of consumed samples alone. A
/// global batch that reaches the end of an epoch is filled up from the next one: nothing is dropped or
/// padded.
class Sampler {
 public:
  /// Requires samples ≥ 1. Without shuffle every epoch goes from sample 0 to the last.
  Sampler(std::int64_t samples, bool shuffle, std::uint64_t seed)
      : samples_(samples), shuffle_(shuffle), seed_(seed) {}

  std::int64_t samples() const { return samples_; }
  /// The sample at a place, 0 ≤ place.
  std::int64_t sample(std::int64_t place) const;

 private:
  std::int64_t samples_;
  bool shuffle_;
  std::uint64_t seed_;
};

/// The part of each global batch that one data-parallel replica reads: places first_place + m · micro_batch …
/// from the start of the batch, for micro-batch m of `micro_batches`.
struct ReplicaSlice {
  std::int64_t first_place = 0;
  std::int64_t micro_batches = 0;
  bool operator==(const ReplicaSlice&) const = default;
};

/// The slices of the replicas 0 … data_parallel − 1 tile the global batch, in order.
ReplicaSlice replica_slice(const specs::Placement& placement, std::int64_t data_rank);

}  // namespace runtime
