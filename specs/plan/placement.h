// A point of the search space: where every part of the model lives, and how one step moves through it.
//
// A placement is a list of pipeline stages, each with its own devices, mesh, units and treatments. The
// regular 3D mesh is the case where all stages are equal; `regular_placement` builds it and `as_regular`
// recognises it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/vocabulary.h"
#include "specs/schedule/schedule.h"

namespace specs {

enum class MeshAxis : std::uint8_t { tensor, context, expert, data, pipeline };

template <>
struct EnumNames<MeshAxis> {
  static constexpr std::array<std::pair<MeshAxis, std::string_view>, 5> names{{
      {MeshAxis::tensor, "tp"},
      {MeshAxis::context, "cp"},
      {MeshAxis::expert, "ep"},
      {MeshAxis::data, "dp"},
      {MeshAxis::pipeline, "pp"},
  }};
};

/// The axes in the order in which consecutive ranks fill them, innermost first; prints as "tp-cp-ep-dp-pp".
/// The expert axis is carved out of data × context: it names their innermost part and adds no ranks.
using AxisOrder = std::array<MeshAxis, 5>;
inline constexpr AxisOrder default_axis_order{MeshAxis::tensor, MeshAxis::context, MeshAxis::expert,
                                              MeshAxis::data, MeshAxis::pipeline};
std::string to_string(const AxisOrder& order);

/// The device grid of one stage: tensor × context × data ranks for dense parameters,
/// expert_tensor × expert × (the rest) for experts.
struct StageMesh {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
  std::int64_t expert = 1;         ///< divides data × context × tensor / expert_tensor
  std::int64_t expert_tensor = 1;  ///< tensor degree inside an expert
  AxisOrder order = default_axis_order;

  std::int64_t ranks() const { return tensor * context * data; }
  std::int64_t expert_data() const { return ranks() / (expert * expert_tensor); }
  bool operator==(const StageMesh&) const = default;
};

/// Ranks of one stage as `blocks` runs of `block` consecutive ranks, `stride` apart. One run where the
/// pipeline axis is outermost; the general case covers every axis order.
struct DeviceSet {
  std::int64_t first = 0;
  std::int64_t block = 1;
  std::int64_t stride = 0;  ///< 0 with a single block
  std::int64_t blocks = 1;

  std::int64_t size() const { return block * blocks; }
  std::int64_t rank(std::int64_t index) const { return first + (index / block) * stride + index % block; }
  bool operator==(const DeviceSet&) const = default;
};

/// Units of a model with L layers, in the order the data flows: 0 the embedding, 2l+1 the attention of layer
/// l, 2l+2 its FFN, 2L+1 the final norm with the output layer. A stage holds [first, end).
struct UnitRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool contains(std::int64_t unit) const { return first <= unit && unit < end; }
  std::int64_t size() const { return end - first; }
  bool operator==(const UnitRange&) const = default;
};

constexpr std::int64_t unit_count(std::int64_t layers) { return 2 * layers + 2; }
constexpr std::int64_t embedding_unit() { return 0; }
constexpr std::int64_t attention_unit(std::int64_t layer) { return 2 * layer + 1; }
constexpr std::int64_t feed_forward_unit(std::int64_t layer) { return 2 * layer + 2; }
constexpr std::int64_t output_unit(std::int64_t layers) { return 2 * layers + 1; }

enum class OutputLayerMode : std::uint8_t {
  vocabulary_parallel,  ///< each rank a slice of the table, all tokens
  token_parallel,  ///< the whole table on each rank of the tensor axis, each rank its share of the tokens
};

template <>
struct EnumNames<OutputLayerMode> {
  static constexpr std::array<std::pair<OutputLayerMode, std::string_view>, 2> names{{
      {OutputLayerMode::vocabulary_parallel, "vocabulary-parallel"},
      {OutputLayerMode::token_parallel, "token-parallel"},
  }};
};

/// Tensor degree of each module kind; 0 means the stage's. Where one is smaller, its parameters are
/// replicated over the rest of the tensor axis.
struct ModuleTreatments {
  std::int64_t attention_tensor = 0;
  std::int64_t feed_forward_tensor = 0;
  std::int64_t embedding_tensor = 0;
  std::int64_t output_tensor = 0;
  OutputLayerMode output_mode = OutputLayerMode::vocabulary_parallel;
  bool operator==(const ModuleTreatments&) const = default;
};

/// `layers` consecutive layers of a stage (a layer counts where any of its units is here) treated alike.
struct RecomputationRun {
  std::int64_t layers = 0;
  Recomputation mode = Recomputation::none;
  bool operator==(const RecomputationRun&) const = default;
};

struct ZeroTreatment {
  std::int64_t stage = 0;  ///< 0 nothing sharded, 1 optimizer states, 2 + gradients, 3 + parameters
  ShardScope scope = ShardScope::world;
  bool operator==(const ZeroTreatment&) const = default;
};

struct OffloadTreatment {
  OffloadDevice device = OffloadDevice::none;
  std::int64_t eighths = 0;  ///< share that is moved, 0 … 8
  bool operator==(const OffloadTreatment&) const = default;
};

struct StageOffload {
  OffloadTreatment optimizer;
  OffloadTreatment parameters;
  OffloadTreatment activations;
  bool delayed_update = false;  ///< the CPU update of step n may finish during step n + 1
  bool operator==(const StageOffload&) const = default;
};

struct PipelineStage {
  std::int64_t pipeline_rank = 0;
  std::int64_t device_group = 0;  ///< index into the cluster's groups
  DeviceSet devices;
  StageMesh mesh;
  UnitRange units;
  ModuleTreatments modules;
  std::vector<RecomputationRun> recomputation;  ///< empty: none for all layers
  ZeroTreatment zero;
  StageOffload offload;
  std::vector<std::int64_t> replica_micro_batches;  ///< per data-parallel replica; empty: equal shares
  bool operator==(const PipelineStage&) const = default;
};

struct Placement {
  std::int64_t micro_batch = 1;   ///< sequences
  std::int64_t accumulation = 1;  ///< micro-batches of a replica in one step, where shares are equal
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;  ///< stages a pipeline rank holds
  std::int64_t micro_batch_group =
      0;  ///< interleaved: micro-batches that go round together; 0: pipeline ranks
  bool sequence_parallel = false;
  std::int64_t local_steps = 1;  ///< updates between synchronisations; above 1 the mathematics changes
  std::vector<PipelineStage> stages;

  std::int64_t pipeline_ranks() const {
    return virtual_stages == 0 ? 0 : static_cast<std::int64_t>(stages.size()) / virtual_stages;
  }
  /// Ranks that the stages use together.
  std::int64_t world_size() const;
  bool operator==(const Placement&) const = default;
};

std::size_t hash_value(const Placement& placement);

/// The placements in which all stages are treated alike and layers are cut as evenly as they go.
struct RegularPlacement {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  AxisOrder order = default_axis_order;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  bool sequence_parallel = false;
  Recomputation recomputation = Recomputation::none;
  ZeroTreatment zero;
  StageOffload offload;

  std::int64_t world_size() const { return tensor * context * pipeline * data; }
  bool operator==(const RegularPlacement&) const = default;
};

/// Expands to stages for a model of `layers` layers; layers / (pipeline · virtual_stages) per stage, the
/// remainder one each to the stages after the first (the first holds the embedding, the last the output layer
/// and comes last).
Placement regular_placement(const RegularPlacement& regular, std::int64_t layers);

/// The inverse, where the placement has that form.
std::optional<RegularPlacement> as_regular(const Placement& placement, std::int64_t layers);

/// Layers that a stage holds any unit of.
std::int64_t layers_touched(const UnitRange& units, std::int64_t layers);

/// How the stage treats its n-th touched layer.
Recomputation recomputation_of(const PipelineStage& stage, std::int64_t touched_layer);

}  // namespace specs
