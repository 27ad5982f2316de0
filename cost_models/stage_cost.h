// What one rank of a pipeline stage does for one micro-batch and for one step: its units' time, its share of
// ZeRO-3 gathers, its gradient reduction and its optimizer update.
#pragma once

#include <array>
#include <cstdint>

#include "cost_models/cost_inputs.h"
#include "cost_models/layer_cost.h"
#include "cost_models/schedule_path.h"
#include "specs/plan/placement.h"

namespace cost_models {

inline constexpr std::size_t recompute_modes = specs::EnumNames<specs::Recomputation>::names.size();

/// Units of one kind by recomputation mode.
using ModeCounts = std::array<double, recompute_modes>;
inline double total(const ModeCounts& counts) { return counts[0] + counts[1] + counts[2]; }

/// How many units of each kind a stage or a rank holds.
struct UnitCounts {
  ModeCounts encoder_attention{};
  ModeCounts attention{};
  ModeCounts feed_forward{};
  ModeCounts mixture{};
  double prediction = 0;
  bool embedding = false;
  bool output = false;
  std::uint32_t recomputed_modules = 0;  ///< of the selectively recomputed layers; 0: core attention
  double checkpoint_layers = 1;          ///< full recomputation: layers from one checkpoint to the next
  bool begins_in_layer = false;          ///< with the feed-forward half of its first layer

  double attentions() const { return total(encoder_attention) + total(attention); }
  double feed_forwards() const { return total(feed_forward); }
  double mixtures() const { return total(mixture); }
  bool recomputes(specs::RecomputedModule module) const {
    const auto bits = recomputed_modules != 0
                          ? recomputed_modules
                          : static_cast<std::uint32_t>(specs::RecomputedModule::core_attention);
    return (bits & static_cast<std::uint32_t>(module)) != 0;
  }
  UnitCounts& operator+=(const UnitCounts& other);
  bool operator==(const UnitCounts&) const = default;
};

/// The counts of a range of units whose layers are all treated alike.
UnitCounts unit_counts(const specs::ModelSpec& model, const specs::UnitRange& units,
                       specs::Recomputation mode, std::uint32_t recomputed_modules);
/// The counts of a stage, run by run.
UnitCounts unit_counts(const specs::ModelSpec& model, const specs::PipelineStage& stage);

/// The part of a placement that a stage's data-parallel work depends on.
struct ShardKey {
  double tensor = 1;
  double context = 1;
  double data = 1;
  double pipeline = 1;
  double expert = 1;
  double expert_tensor = 1;
  specs::AxisOrder order = specs::default_axis_order;
  specs::ZeroTreatment zero;
  specs::StageOffload offload;
  double gradient_bucket_bytes = 0;  ///< 0: everything in one
  double gather_bucket_bytes = 0;    ///< 0: everything in one
  double minimum_message_bytes = 0;
  double prefetch_units = 1;
  double local_steps = 1;
  /// Ranks over which dense states are sharded (1 at ZeRO-0).
  double dense_shards(double devices_per_node) const;
  double expert_shards(double devices_per_node) const;
  double expert_data() const { return tensor * context * data / (expert * expert_tensor); }
};

/// Gradients are reduced after each micro-batch; else once a step. Beside a pipeline those of ZeRO-2 stay
/// whole until the last.
bool reduces_every_micro_batch(const ShardKey& shards);

/// Seconds of a step that a stage adds after its last backward pass.
struct StepEndSeconds {
  double gradient_reduction = 0;  ///< exposed
  double parameter_gather = 0;    ///< exposed
  double optimizer_update = 0;
  double offload_transfer = 0;
  double delayed = 0;  ///< of the host during the next step, which is no shorter
  /// What all ranks begin together, once every gradient is reduced.
  double update() const { return parameter_gather + optimizer_update + offload_transfer; }
  double total() const { return gradient_reduction + update(); }
};

/// Parameters on one rank.
RankParameters stage_parameters(const LayerCosts& costs, const UnitCounts& counts, bool tied_embeddings);

/// The sum over the units of a stage, without what ZeRO-2 and 3 move meanwhile: never above `stage_seconds`.
StageSeconds unit_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                          const ShardKey& shards);

/// Time of one micro-batch. With `terms`, adds each term's exposed share; they sum to the total.
StageSeconds stage_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                           const ShardKey& shards, TermSeconds* terms = nullptr);

/// Whether a parameter is updated in less time on the host, transfers included, than on its device: a larger
/// share of the optimizer that is offloaded then makes `step_end_seconds` smaller.
bool host_updates_quicker(const CostInputs& inputs, specs::OffloadDevice device);

StepEndSeconds step_end_seconds(const CostInputs& inputs, const RankParameters& parameters,
                                const ShardKey& shards);

}  // namespace cost_models
