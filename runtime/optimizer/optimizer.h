// AdamW and SGD with momentum over flat buckets, whole or sharded over the ranks that hold the same
// parameters (ZeRO 1).
//
// With 16-bit parameters the optimizer keeps an fp32 master of each weight that it updates; the parameter is
// the master rounded.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/comm/communicator.h"
#include "runtime/data_parallel/gradient_reducer.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/optimizer/update_kernels.h"
#include "specs/language/training.h"

namespace runtime {

/// Elements [begin, end) of a parameter's flattened local shape and their state, as views into the buckets.
struct StateSlice {
  const Parameter* parameter = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  at::Tensor weight;  ///< what the optimizer updates: master or parameter
  at::Tensor gradient;
  std::vector<std::pair<std::string, at::Tensor>> moments;  ///< "exp_avg", "exp_avg_sq" or "momentum"
};

class Optimizer {
 public:
  /// `replicas`: the ranks that hold the same parameters. The registry must be materialized and outlive it.
  Optimizer(ParameterRegistry& registry, const specs::OptimizerSpec& spec, const Communicator& replicas,
            bool sharded, std::uint64_t seed);

  /// One update of everything this rank answers for. With shards, the parameters then stand whole on every
  /// rank again. Weight decay applies to the parameters that declare it.
  void update(double learning_rate, double gradient_scale);

  /// Updates done; part of AdamW's bias correction.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  /// All state of this rank, in the order of the buckets; padding is in no slice.
  const std::vector<StateSlice>& slices() const { return slices_; }
  bool has_master() const { return has_master_; }
  bool sharded() const { return sharded_; }

  /// Masters from the parameters, or parameters from the masters (gathered from all shards): after loading.
  void masters_from_parameters();
  void parameters_from_masters();

  bool skip_gather = false;  ///< fault injection

 private:
  struct BucketState {
    BucketRange range;
    at::Tensor weight;
    std::vector<std::pair<std::string, at::Tensor>> moments;
  };

  void make_state(Bucket& bucket, std::uint64_t seed);
  void make_slices(const Bucket& bucket, const BucketState& state);
  void publish(std::size_t bucket);

  ParameterRegistry& registry_;
  specs::OptimizerSpec spec_;
  const Communicator& replicas_;
  bool sharded_;
  bool has_master_;
  std::int64_t updates_ = 0;
  std::vector<BucketState> states_;
  std::vector<StateSlice> slices_;
  std::vector<std::size_t> first_slice_;  ///< of each bucket, and the end
  std::vector<PendingWork> gathers_;
};

}  // namespace runtime
