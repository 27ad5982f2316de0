// Makes the gradients of a step whole: sums them over every axis on which they are partial.
//
// A bucket travels as soon as the last contribution to it has come, while backward goes on. First the
// parameters in it that are partial over the tensor axis are summed there, then the bucket over the data
// axis: all-reduced, or with ZeRO reduced and scattered, each rank keeping its shard. A tied table has a
// bucket of its own, which waits for the sum over first and last stage: the copies lie in different shards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/train/fault_switches.h"

namespace runtime {

/// Elements [begin, end) of a bucket.
struct BucketRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// The part of a bucket that rank `rank` of `size` answers for.
BucketRange shard_of(const Bucket& bucket, std::int64_t rank, std::int64_t size);

class GradientReducer final : public GradientListener {
 public:
  struct Options {
    bool scatter = false;  ///< ZeRO 1: after the reduction only this rank's shard is whole
    bool overlap = true;   ///< false: everything travels after the last backward
    FaultSwitches faults;
  };

  /// Listens to the registry, which must be materialized. References must outlive it.
  GradientReducer(ParameterRegistry& registry, const Mesh& mesh, Options options);

  /// Takes over the wait for a bucket whose last reduction of a step has been started: its gradients are
  /// whole on this rank once `wait_until_whole` returns, on whatever thread; `finish` then does not wait for
  /// it.
  using Handover = std::function<void(std::size_t bucket, std::function<void()> wait_until_whole)>;
  void hand_over_to(Handover handover) { handover_ = std::move(handover); }

  /// Zeroes the gradients and expects contributions from this many micro-batches of every stage.
  void begin_step(std::int64_t micro_batches);
  void accumulated(ParameterBlock& block) override;

  /// The sum of a tied table's gradient over first and last stage.
  void reduce_tied();
  /// Starts what has not been started of a stage.
  void reduce_stage(std::int64_t stage);
  /// Waits until all is whole.
  void finish();

 private:
  void start(std::size_t bucket);
  PendingWork reduce_over_data(std::size_t bucket);
  void sum_partial(const Bucket& bucket);

  ParameterRegistry& registry_;
  const Mesh& mesh_;
  Options options_;
  std::map<const ParameterBlock*, std::int64_t> contributions_left_;
  std::vector<std::int64_t> blocks_left_;  ///< of each bucket
  std::vector<bool> started_;
  std::vector<PendingWork> pending_;
  Handover handover_;
};

}  // namespace runtime
