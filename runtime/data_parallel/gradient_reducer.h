// Makes the gradients of a step whole: sums them over every axis on which they are partial.
//
// A bucket travels as soon as the last contribution to it has come, while backward goes on. First the
// parameters in it that are partial over the tensor axis are summed there, then the bucket over the replicas:
// all-reduced, or with ZeRO reduced and scattered, each rank keeping its shard, which is then summed over the
// ranks of other nodes that hold the same one. A tied table has a bucket of its own, which waits for the sum
// over first and last stage: the copies lie in different shards.
//
// With ZeRO 2 and 3 every micro-batch is reduced for itself and added to the shard. A bucket's whole
// gradients exist from the first contribution until they have travelled; at most one bucket travels while
// another is filled (a table that embeds and is the output layer is filled from one end of the backward pass
// to the other).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/data_parallel/sharding.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/train/fault_switches.h"
#include "specs/plan/placement.h"

namespace runtime {

class GradientReducer final : public GradientListener {
 public:
  struct Options {
    Sharding sharding;
    bool overlap = true;  ///< false: nothing travels while backward computes
    FaultSwitches faults;
    /// Smaller gradients are summed over the tensor axis in one message with others of their bucket.
    std::int64_t minimum_message_bytes = specs::BucketSizes{}.minimum_message_bytes;
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
  void open(ParameterBlock& block) override;
  void accumulated(ParameterBlock& block) override;

  /// The sum of a tied table's gradient over first and last stage.
  void reduce_tied();
  /// Starts what has not been started of a stage, whose contributions must all have come. With ZeRO 2 and 3,
  /// after each micro-batch: waits for what travels.
  void reduce_stage(std::int64_t stage);
  /// Waits for what travels.
  void synchronise();
  /// Waits until all is whole.
  void finish();

  /// Called when the reduction of a bucket is launched, for traces and tests.
  std::function<void(std::size_t bucket)> on_launch;
  /// Most buckets whose whole gradients were held at once beside their shards, since the last begin_step: 0
  /// without sharded gradients.
  std::int64_t peak_whole_buckets() const { return peak_whole_buckets_; }
  /// Reductions under way, those handed over not counted.
  std::int64_t travelling() const { return static_cast<std::int64_t>(travelling_.size()); }

 private:
  /// How far a bucket is.
  struct Progress {
    std::int64_t blocks_left = 0;  ///< without whose contributions it cannot travel
    std::int64_t journeys = 0;     ///< launched in this step
    std::int64_t arrived = 0;
  };
  /// A reduction under way.
  struct Journey {
    std::size_t bucket = 0;
    at::Tensor whole;  ///< the bucket's gradients, of which this rank's slice becomes the sum
    PendingWork work;
  };

  bool shards_gradients() const { return options_.sharding.stage >= 2; }
  /// Micro-batches that a bucket gathers before it travels.
  std::int64_t micro_batches_a_journey() const { return shards_gradients() ? 1 : micro_batches_; }
  std::int64_t journeys_a_step() const { return shards_gradients() ? micro_batches_ : 1; }
  /// Whether a bucket is whole once its own reduction has ended, with nothing to be done on arrival.
  bool whole_on_arrival() const {
    const Sharding& sharding = options_.sharding;
    return sharding.stage == 0 || (sharding.stage == 1 && sharding.holders->size() == 1);
  }
  void expect_contributions(std::size_t bucket);
  void launch(std::size_t bucket);
  PendingWork reduce(std::size_t bucket) const;
  void sum_partial(const Bucket& bucket) const;
  void arrive();
  void hand_over(std::size_t bucket, PendingWork last);

  ParameterRegistry& registry_;
  const Mesh& mesh_;
  Options options_;
  std::int64_t micro_batches_ = 0;
  std::map<const ParameterBlock*, std::int64_t> contributions_left_;
  std::vector<Progress> progress_;  ///< of each bucket
  std::deque<Journey> travelling_;
  std::vector<PendingWork> over_holders_;
  std::int64_t whole_buckets_ = 0;
  std::int64_t peak_whole_buckets_ = 0;
  Handover handover_;
};

}  // namespace runtime
