// What a training software stack can execute: its part of the search space, with the reason for what is
// left out. The planner excludes the rest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/training.h"
#include "specs/language/vocabulary.h"
#include "specs/schedule/schedule.h"

namespace specs {

/// How much of a kind a stack sends in one collective: by at most one of bytes, elements and layer;
/// everything in one where none is given.
struct StackBucket {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::int64_t elements_per_replica = 0;  ///< beside `elements`: at least this many for each replica
  bool layer = false;                     ///< one transformer layer of a rank
  std::string source;                     ///< where the figure stands
  bool operator==(const StackBucket&) const = default;
};

/// Which numbers of layers a recomputing stage may recompute.
enum class RecomputedLayerNumbers : std::uint8_t {
  all,    ///< its layers all
  alike,  ///< full recomputation: the same number for every stage; selective: all
  each,   ///< a number of its own for every pipeline rank
};

template <>
struct EnumNames<RecomputedLayerNumbers> {
  static constexpr std::array<std::pair<RecomputedLayerNumbers, std::string_view>, 3> names{{
      {RecomputedLayerNumbers::all, "all"},
      {RecomputedLayerNumbers::alike, "alike"},
      {RecomputedLayerNumbers::each, "each"},
  }};
};

struct StackSpec {
  std::string name;
  std::string source;  ///< where the facts stand
  std::vector<Precision> precisions;
  std::vector<OptimizerKind> optimizers;
  std::vector<ScheduleKind> schedules;  ///< with more than one pipeline rank; empty: no pipeline parallelism
  std::vector<Recomputation> recomputations;
  RecomputedLayerNumbers recomputed_layers = RecomputedLayerNumbers::all;
  std::vector<AttentionImplementation> attention;
  std::vector<std::int64_t> zero_stages;
  std::int64_t zero_stage_with_pipeline = 0;  ///< the highest ZeRO stage beside more than one pipeline rank
  std::string zero_with_pipeline_reason;      ///< why not a higher one
  std::vector<ShardScope> shard_scopes;
  std::vector<std::string> axis_orders{
      "tp-cp-dp-pp"};                         ///< in which its ranks may fill the mesh; the default first
  std::vector<OutputLayerMode> output_modes;  ///< with a tensor degree above 1
  bool module_tensor_degrees = false;  ///< attention, FFN, tables may each have a tensor degree of their own
  std::vector<OffloadDevice> optimizer_offload;
  std::vector<OffloadDevice> parameter_offload;
  std::vector<OffloadDevice> activation_offload;
  bool activation_offload_with_pipeline = true;  ///< beside more than one pipeline rank
  bool tensor_parallel = false;
  bool sequence_parallel = false;
  bool context_parallel = false;
  bool expert_parallel = false;
  bool expert_tensor_parallel = false;
  bool uneven_stages = false;       ///< stages may hold unequal numbers of layers
  bool cuts_inside_layers = false;  ///< a cut may fall between an attention and its FFN
  bool micro_batch_groups =
      false;                    ///< interleaved schedules with more micro-batches a round than pipeline ranks
  bool delayed_update = false;  ///< an offloaded update may end during the next step
  bool local_steps = false;
  bool cpu_devices = false;                  ///< runs on generation "cpu"
  bool overlaps_gradient_reduction = false;  ///< the data-parallel reduction runs during the backward pass
  bool overlaps_parameter_gather = false;    ///< the gather of updated or sharded parameters is prefetched
  bool overlaps_tensor_communication = false;
  Precision gradient_precision = Precision::fp32;  ///< of the accumulated gradient of a 16-bit run
  StackBucket gradient_bucket;
  StackBucket gather_bucket;  ///< of updated parameters, after the step
  bool operator==(const StackSpec&) const = default;
};

}  // namespace specs
