// What a placement costs, term by term and stage by stage. Produced by cost_models, carried by the plan.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"

namespace specs {

enum class TimeTerm : std::uint8_t {
  attention,
  feed_forward,
  embedding,
  output_layer,  ///< with the loss
  recomputation,
  memory_bound,  ///< norms, activations, residuals, casts
  launch_overhead,
  tensor_communication,
  context_communication,
  expert_communication,
  pipeline_transfer,
  pipeline_bubble,
  gradient_reduction,
  parameter_gather,
  offload_transfer,
  optimizer_update,
  data_loading,
  checkpoint_stall,
  fixed_overhead,
};

template <>
struct EnumNames<TimeTerm> {
  static constexpr std::array<std::pair<TimeTerm, std::string_view>, 19> names{{
      {TimeTerm::attention, "attention"},
      {TimeTerm::feed_forward, "feed_forward"},
      {TimeTerm::embedding, "embedding"},
      {TimeTerm::output_layer, "output_layer"},
      {TimeTerm::recomputation, "recomputation"},
      {TimeTerm::memory_bound, "memory_bound"},
      {TimeTerm::launch_overhead, "launch_overhead"},
      {TimeTerm::tensor_communication, "tensor_communication"},
      {TimeTerm::context_communication, "context_communication"},
      {TimeTerm::expert_communication, "expert_communication"},
      {TimeTerm::pipeline_transfer, "pipeline_transfer"},
      {TimeTerm::pipeline_bubble, "pipeline_bubble"},
      {TimeTerm::gradient_reduction, "gradient_reduction"},
      {TimeTerm::parameter_gather, "parameter_gather"},
      {TimeTerm::offload_transfer, "offload_transfer"},
      {TimeTerm::optimizer_update, "optimizer_update"},
      {TimeTerm::data_loading, "data_loading"},
      {TimeTerm::checkpoint_stall, "checkpoint_stall"},
      {TimeTerm::fixed_overhead, "fixed_overhead"},
  }};
};

enum class MemoryClass : std::uint8_t {
  parameters,
  gradients,
  optimizer_state,
  master_weights,
  activations,
  recomputation_checkpoints,
  recomputation_working_set,
  logits_and_loss,
  communication_buckets,
  gathered_parameters,
  communicator_buffers,
  offload_staging,  ///< pinned buffers and double buffers of offloaded state
  workspace,
  framework_context,
  allocator_slack,
};

template <>
struct EnumNames<MemoryClass> {
  static constexpr std::array<std::pair<MemoryClass, std::string_view>, 15> names{{
      {MemoryClass::parameters, "parameters"},
      {MemoryClass::gradients, "gradients"},
      {MemoryClass::optimizer_state, "optimizer_state"},
      {MemoryClass::master_weights, "master_weights"},
      {MemoryClass::activations, "activations"},
      {MemoryClass::recomputation_checkpoints, "recomputation_checkpoints"},
      {MemoryClass::recomputation_working_set, "recomputation_working_set"},
      {MemoryClass::logits_and_loss, "logits_and_loss"},
      {MemoryClass::communication_buckets, "communication_buckets"},
      {MemoryClass::gathered_parameters, "gathered_parameters"},
      {MemoryClass::communicator_buffers, "communicator_buffers"},
      {MemoryClass::offload_staging, "offload_staging"},
      {MemoryClass::workspace, "workspace"},
      {MemoryClass::framework_context, "framework_context"},
      {MemoryClass::allocator_slack, "allocator_slack"},
  }};
};

enum class MemoryLocation : std::uint8_t { device, host, host_pinned, nvme };

template <>
struct EnumNames<MemoryLocation> {
  static constexpr std::array<std::pair<MemoryLocation, std::string_view>, 4> names{{
      {MemoryLocation::device, "device"},
      {MemoryLocation::host, "host"},
      {MemoryLocation::host_pinned, "host_pinned"},
      {MemoryLocation::nvme, "nvme"},
  }};
};

/// One term in one step. Entries with pipeline_rank −1 split the critical path of the whole job, and those of
/// each pipeline rank split its own step, bubble included: either sum of `exposed_seconds` is the step time.
/// `busy_seconds` is how long the resource works, of which the rest is hidden behind other work.
struct TimeEntry {
  TimeTerm term = TimeTerm::fixed_overhead;
  std::int64_t pipeline_rank = -1;
  std::int64_t stage = -1;  ///< −1: all stages of the pipeline rank
  double exposed_seconds = 0;
  double busy_seconds = 0;
  double exposed_seconds_low = 0;  ///< the 80 % interval; both 0 where none is known
  double exposed_seconds_high = 0;
  double flops = 0;  ///< of one rank in the whole step
  double bytes = 0;  ///< moved by one rank in the whole step, by memory or link
  bool operator==(const TimeEntry&) const = default;
};

/// Bytes of one class on one device rank of a pipeline rank, at the one instant of that rank's peak total.
/// Offloaded state keeps its class and changes its location.
struct MemoryEntry {
  MemoryClass memory_class = MemoryClass::parameters;
  MemoryLocation location = MemoryLocation::device;
  std::int64_t pipeline_rank = 0;
  std::int64_t bytes = 0;
  bool operator==(const MemoryEntry&) const = default;
};

struct CostBreakdown {
  double step_seconds = 0;
  double step_seconds_low = 0;  ///< the 80 % interval; equal to step_seconds where none is known
  double step_seconds_high = 0;
  double tokens_per_second = 0;
  double model_flops_per_step = 0;            ///< forward and backward, causal attention, no recomputation
  double noncausal_model_flops_per_step = 0;  ///< the same, the whole attention square counted
  double model_flops_utilization =
      0;  ///< of the used devices' dense peak at the training precision, non-causal
  double cost_per_step_dollars = 0;
  double energy_per_step_joules = 0;
  std::int64_t peak_device_bytes = 0;         ///< the largest over pipeline ranks
  std::int64_t peak_host_bytes_per_node = 0;  ///< pinned included
  std::int64_t peak_nvme_bytes_per_node = 0;
  double goodput_fraction = 1;  ///< useful share of wall time under failures and checkpoints
  std::int64_t checkpoint_bytes = 0;
  double checkpoint_seconds = 0;
  double checkpoint_stall_seconds = 0;
  std::int64_t checkpoint_every_steps = 0;  ///< chosen for goodput; 0: not asked
  double run_seconds = 0;                   ///< of `[training] tokens`; 0 where not given, as the next three
  double run_device_hours = 0;
  double run_cost_dollars = 0;
  double run_energy_joules = 0;
  std::vector<TimeEntry> time;
  std::vector<MemoryEntry> memory;

  /// Of the whole job (pipeline_rank −1).
  double exposed_seconds(TimeTerm term) const;
  std::int64_t device_bytes(std::int64_t pipeline_rank) const;
  bool operator==(const CostBreakdown&) const = default;
};

}  // namespace specs
