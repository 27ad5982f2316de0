// AdamW and SGD with momentum over flat buckets, whole or sharded over ranks that hold the same parameters
// (ZeRO), on the device or offloaded to the host.
//
// With 16-bit parameters the optimizer keeps an fp32 master of each weight that it updates; the parameter is
// the master rounded.
//
// Offloaded state is worked on by a thread of its own: the gradients of a bucket are copied to the host as
// soon as they are whole, while the backward pass goes on. Where nothing has to be known of all gradients
// before the update (`update_early`), their part is updated at once, too; else from `update` on, bucket by
// bucket, while the parameters of the bucket before are copied back and gathered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/data_parallel/sharding.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/offload/host_worker.h"
#include "runtime/optimizer/optimizer_state.h"
#include "runtime/optimizer/update_kernels.h"
#include "specs/language/training.h"

namespace runtime {

struct OptimizerOptions {
  /// Of the state of each bucket, by stage; empty: nothing is offloaded.
  std::vector<std::int64_t> eighths_on_host;
  /// The host's update of a step runs during the next step: parameters are one update behind the gradients
  /// that change them.
  bool delayed = false;
  bool skip_gather = false;     ///< fault injection
  bool aliases_device = false;  ///< fault injection
};

class Optimizer {
 public:
  /// The registry must be materialized for this sharding and outlive it.
  Optimizer(ParameterRegistry& registry, const specs::OptimizerSpec& spec, const Sharding& sharding,
            const OptimizerOptions& options, std::uint64_t seed);
  ~Optimizer();

  /// Host parts of the coming step are updated as soon as their gradients are there, by gradients as they
  /// are: for steps that clip nothing and scale nothing. Without host parts, or delayed, it does nothing.
  void update_early(double learning_rate);
  /// The gradients of a bucket are whole on this rank once `wait_until_whole` returns, which it may do on
  /// another thread.
  void gradients_on_their_way(std::size_t bucket, std::function<void()> wait_until_whole);
  /// Until all gradients handed over are whole.
  void wait_for_gradients();

  /// One update of everything this rank answers for. With ZeRO 1 and 2, the parameters then stand whole on
  /// every rank again. Weight decay applies to the parameters that declare it.
  void update(double learning_rate, double gradient_scale);
  /// In place of `update` where the step is skipped. Parameters are as they were; after an early update the
  /// host's state is not, and the optimizer is of no more use.
  void skip();
  /// Ends and publishes a delayed update. Collective.
  void finish_delayed();

  /// Updates done, or begun where delayed; part of AdamW's bias correction.
  std::int64_t updates() const { return updates_; }
  void set_updates(std::int64_t updates) { updates_ = updates; }

  /// All state of this rank, in the order of the buckets. Settled by `finish_delayed`.
  const std::vector<StatePart>& parts() const { return parts_; }
  bool offloads() const { return worker_ != nullptr; }
  /// Copies and updates handed to the host's thread so far.
  std::int64_t host_jobs() const { return worker_ ? worker_->submitted() : 0; }

  /// Parameters from the masters (gathered from all shards): after loading.
  void parameters_from_masters();

 private:
  UpdateFactors factors(double learning_rate, double gradient_scale) const;
  void update_part(const StatePart& part, UpdateFactors factors) const;
  /// Copies the parameters of a bucket from what was updated, and starts to gather them.
  void publish(std::size_t bucket);
  void publish_all();
  /// Calls body(part) for the parts of the bucket.
  template <class Body>
  void for_parts_of(std::size_t bucket, Body body) const;

  ParameterRegistry& registry_;
  specs::OptimizerSpec spec_;
  Sharding sharding_;
  OptimizerOptions options_;
  std::int64_t updates_ = 0;
  std::vector<StatePart> parts_;
  std::vector<std::size_t> first_part_;  ///< of each bucket, and the end
  std::optional<UpdateFactors> early_;
  bool unusable_ = false;
  bool delayed_update_runs_ = false;
  std::vector<std::int64_t> host_job_;  ///< of each bucket: the latest
  std::vector<PendingWork> gathers_;
  std::unique_ptr<HostWorker> worker_;  ///< null where nothing is offloaded
};

}  // namespace runtime
