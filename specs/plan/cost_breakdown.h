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
  workspace,
  framework_context,
  allocator_slack,
};

template <>
struct EnumNames<MemoryClass> {
  static constexpr std::array<std::pair<MemoryClass, std::string_view>, 14> names{{
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
      {MemoryClass::workspace, "workspace"},
      {MemoryClass::framework_context, "framework_context"},
      {MemoryClass::allocator_slack, "allocator_slack"},
  }};
};

enum class MemoryLocation : std::uint8_t { device, host, nvme };

template <>
struct EnumNames<MemoryLocation> {
  static constexpr std::array<std::pair<MemoryLocation, std::string_view>, 3> names{{
      {MemoryLocation::device, "device"},
      {MemoryLocation::host, "host"},
      {MemoryLocation::nvme, "nvme"},
  }};
};

/// One term of one stage in one step. Summed over all entries, `exposed_seconds` is the step time;
/// `busy_seconds` is how long the resource works, of which the rest is hidden behind other work.
struct TimeEntry {
  TimeTerm term = TimeTerm::fixed_overhead;
  std::int64_t stage = -1;  ///< −1: the whole job
  double exposed_seconds = 0;
  double busy_seconds = 0;
  double flops = 0;  ///< of one rank
  double bytes = 0;  ///< moved by one rank, by memory or link
  bool operator==(const TimeEntry&) const = default;
};

/// Bytes of one class on one rank of a pipeline rank, at that rank's peak.
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
  double model_flops_per_step = 0;     ///< forward and backward, causal attention, no recomputation
  double model_flops_utilization = 0;  ///< of the devices' dense peak at the training precision
  double cost_per_step = 0;            ///< US dollars
  double energy_per_step_joules = 0;
  std::int64_t peak_device_bytes = 0;  ///< the largest over pipeline ranks
  std::int64_t peak_host_bytes_per_node = 0;
  std::vector<TimeEntry> time;
  std::vector<MemoryEntry> memory;

  double exposed_seconds(TimeTerm term) const;
  std::int64_t device_bytes(std::int64_t pipeline_rank) const;
  bool operator==(const CostBreakdown&) const = default;
};

}  // namespace specs
