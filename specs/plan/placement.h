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
#include "specs/language/model.h"
#include "specs/language/vocabulary.h"
#include "specs/schedule/schedule.h"

namespace specs {

enum class MeshAxis : std::uint8_t { tensor, context, data, pipeline };

template <>
struct EnumNames<MeshAxis> {
  static constexpr std::array<std::pair<MeshAxis, std::string_view>, 4> names{{
      {MeshAxis::tensor, "tp"},
      {MeshAxis::context, "cp"},
      {MeshAxis::data, "dp"},
      {MeshAxis::pipeline, "pp"},
  }};
};

/// The axes in the order in which consecutive ranks fill them, innermost first; prints as "tp-cp-dp-pp".
using AxisOrder = std::array<MeshAxis, 4>;
inline constexpr AxisOrder default_axis_order{MeshAxis::tensor, MeshAxis::context, MeshAxis::data,
                                              MeshAxis::pipeline};
std::string to_string(const AxisOrder& order);
std::optional<AxisOrder> axis_order_from(std::string_view text);

/// The device grid of one stage: tensor × context × data ranks for dense parameters. Experts lay a second
/// grid over the same ranks, flattened in axis order: expert_tensor innermost, then expert, then expert-data.
struct StageMesh {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
  std::int64_t expert = 1;         ///< expert × expert_tensor divides ranks()
  std::int64_t expert_tensor = 1;  ///< tensor degree inside an expert
  AxisOrder order = default_axis_order;
  ContextMode context_mode = ContextMode::ring;

  std::int64_t ranks() const { return tensor * context * data; }
  std::int64_t expert_data() const { return ranks() / (expert * expert_tensor); }
  bool operator==(const StageMesh&) const = default;
};

/// Ranks of one stage as `blocks` runs of `block` consecutive ranks, `stride` apart. One run where the
/// pipeline axis is outermost; the general case covers every axis order. Follows from the mesh's axis order
/// where all stages have one mesh; readers check it.
struct DeviceSet {
  std::int64_t first = 0;
  std::int64_t block = 1;
  std::int64_t stride = 0;  ///< 0 with a single block
  std::int64_t blocks = 1;

  std::int64_t size() const { return block * blocks; }
  std::int64_t rank(std::int64_t index) const { return first + (index / block) * stride + index % block; }
  bool operator==(const DeviceSet&) const = default;
};

/// Units of a model with L blocks, in the order the data flows: 0 the embedding, 2l+1 the attention of block
/// l, 2l+2 its FFN, 2L+1 the final norm with the output layer. A stage holds [first, end). Blocks are the
/// encoder layers (their output travels on with the activations), the decoder layers (cross-attention belongs
/// to the attention unit) and the multi-token-prediction layers, in this order: `block_count(model)`.
struct UnitRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool contains(std::int64_t unit) const { return first <= unit && unit < end; }
  std::int64_t size() const { return end - first; }
  bool operator==(const UnitRange&) const = default;
};

std::int64_t block_count(const ModelSpec& model);
constexpr std::int64_t unit_count(std::int64_t layers) { return 2 * layers + 2; }
constexpr std::int64_t embedding_unit() { return 0; }
constexpr std::int64_t attention_unit(std::int64_t layer) { return 2 * layer + 1; }
constexpr std::int64_t feed_forward_unit(std::int64_t layer) { return 2 * layer + 2; }
constexpr std::int64_t output_unit(std::int64_t layers) { return 2 * layers + 1; }

/// What the ranks of the tensor axis do with a module whose own degree is smaller than the axis.
enum class ReplicaWork : std::uint8_t {
  redundant,    ///< the same tokens on each copy
  token_share,  ///< each copy its share of the tokens; gradients are partial over the rest of the axis
};

template <>
struct EnumNames<ReplicaWork> {
  static constexpr std::array<std::pair<ReplicaWork, std::string_view>, 2> names{{
      {ReplicaWork::redundant, "redundant"},
      {ReplicaWork::token_share, "token-share"},
  }};
};

/// Tensor degree of each module kind, a divisor of the stage's; 0 means the stage's own. With a
/// token-parallel output layer its degree is 1, and a tied embedding is treated likewise: the whole table on
/// each rank, each rank its share of the tokens.
struct ModuleTreatments {
  std::int64_t attention_tensor = 0;
  std::int64_t feed_forward_tensor = 0;
  std::int64_t embedding_tensor = 0;
  std::int64_t output_tensor = 0;
  ReplicaWork attention_work = ReplicaWork::redundant;
  ReplicaWork feed_forward_work = ReplicaWork::redundant;
  ReplicaWork embedding_work = ReplicaWork::redundant;
  OutputLayerMode output_mode = OutputLayerMode::vocabulary_parallel;
  bool operator==(const ModuleTreatments&) const = default;
};

/// `layers` consecutive layers of a stage (a layer counts where any of its units is here) treated alike. The
/// runs of a stage cover all its touched layers, or there are none: nothing is recomputed.
struct RecomputationRun {
  std::int64_t layers = 0;
  Recomputation mode = Recomputation::none;
  std::uint32_t modules = 0;      ///< selective: a set of RecomputedModule; 0: core attention
  std::int64_t block_layers = 1;  ///< full: layers from one checkpoint to the next
  bool operator==(const RecomputationRun&) const = default;
};

/// Dense parameters are sharded over data × context, experts over expert-data.
struct ZeroTreatment {
  std::int64_t stage = 0;  ///< 0 nothing sharded, 1 optimizer states, 2 + gradients, 3 + parameters
  ShardScope scope = ShardScope::world;
  std::int64_t shard_ranks = 0;  ///< ranks a shard group has; 0: as the scope says
  /// Stage 3: of the units that a rank uses, the last n of the forward pass, which the backward pass uses
  /// first, are not dropped in between.
  std::int64_t kept_units = 0;
  bool operator==(const ZeroTreatment&) const = default;
};

/// Neutral is {none, 0}; a device with 0 eighths is refused. Eighths count bytes of the optimizer state
/// (master weights included) or of the parameters, and layers for activations; they round up to whole
/// parameters or layers.
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
  bool operator==(const PipelineStage&) const = default;
};

/// Consecutive data-parallel replicas with the same share of the batch, on one kind of device.
struct ReplicaShare {
  std::int64_t replicas = 1;
  std::int64_t micro_batches = 1;  ///< of each of them in one step
  std::int64_t device_group = 0;   ///< index into the cluster's groups; overrides the stage's
  bool operator==(const ReplicaShare&) const = default;
};

/// Pure functions of the placement and the model; part of the point, since they change its price.
struct BucketSizes {
  std::int64_t gradient_bucket_bytes = 0;  ///< 0: one bucket of everything
  std::int64_t gather_bucket_bytes =
      0;  ///< of updated parameters, after the step; 0: one bucket of everything
  std::int64_t minimum_message_bytes = 131072;  ///< smaller tensors never travel alone
  std::int64_t prefetch_units = 1;              ///< ZeRO-3: units gathered ahead of use
  bool operator==(const BucketSizes&) const = default;
};

/// Canonical form, so that equal placements compare equal: `replica_shares` empty where equal,
/// `recomputation` empty where nothing is recomputed, module degrees 0 where they are the stage's, neutral
/// values where a dimension is unused. Σ replicas · micro_batches · micro_batch over the shares is the global
/// batch.
struct Placement {
  std::int64_t micro_batch = 1;   ///< sequences
  std::int64_t accumulation = 1;  ///< micro-batches of a replica in one step, where shares are equal
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;  ///< stages a pipeline rank holds
  std::int64_t micro_batch_group =
      0;                           ///< interleaved: micro-batches that go round together; 0: pipeline ranks
  bool sequence_parallel = false;  ///< of every stage with a tensor degree above 1
  std::int64_t local_steps = 1;    ///< updates between synchronisations; above 1 the mathematics changes
  BucketSizes buckets;
  std::vector<PipelineStage> stages;
  std::vector<ReplicaShare> replica_shares;  ///< empty: every replica runs `accumulation` micro-batches

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
  ModuleTreatments modules;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batch_group = 0;
  bool sequence_parallel = false;
  Recomputation recomputation = Recomputation::none;
  std::uint32_t recomputed_modules = 0;
  ContextMode context_mode = ContextMode::ring;
  BucketSizes buckets;
  ZeroTreatment zero;
  StageOffload offload;
  std::int64_t local_steps = 1;

  std::int64_t world_size() const { return tensor * context * pipeline * data; }
  bool operator==(const RegularPlacement&) const = default;
};

/// Expands to stages for a model of `layers` blocks (`block_count`); layers / (pipeline · virtual_stages) per
/// stage, the remainder one each to the stages after the first (the first holds the embedding, the last the
/// output layer and comes last).
Placement regular_placement(const RegularPlacement& regular, std::int64_t layers);

/// The inverse, where the placement has that form and every dimension that RegularPlacement lacks is neutral.
std::optional<RegularPlacement> as_regular(const Placement& placement, std::int64_t layers);

/// Layers that a stage holds any unit of.
std::int64_t layers_touched(const UnitRange& units, std::int64_t layers);

/// How the stage treats its n-th touched layer.
Recomputation recomputation_of(const PipelineStage& stage, std::int64_t touched_layer);

}  // namespace specs
