// The parts of a price for an outer point: mesh, micro-batch, schedule and treatments are fixed, the cut of
// the model and the recomputed layers of each stage are not. What an algorithm over cuts asks for, without
// building a placement for each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cost_models/rank_price.h"

namespace cost_models {

class StagePricer {
 public:
  /// Keeps references to all but the placement.
  StagePricer(const CostInputs& inputs, const LayerCosts& costs, const ScheduleOrders& orders,
              const specs::RegularPlacement& outer);

  const PipelineShape& shape() const { return job_.step.pipeline; }
  /// Between the pipeline ranks.
  const Transfers& transfers() const { return job_.transfers; }
  double way() const { return job_.way(); }
  const specs::ModelSpec& model() const { return inputs_.model; }

  StageSeconds stage(const UnitCounts& counts) const;
  /// Of its units alone, without what ZeRO and offload move meanwhile: a sum over them, never above `stage`.
  StageSeconds units(const UnitCounts& counts) const;
  StepEndSeconds end(const UnitCounts& counts) const;

  struct Bytes {
    std::int64_t device = 0;
    std::int64_t host_per_node = 0;  ///< were all ranks of a node like this one
  };
  Bytes memory(std::int64_t pipeline_rank, const UnitCounts& counts) const;

  /// The step: `stages` in the order the data flows, `ends` by pipeline rank.
  double step(std::span<const StageSeconds> stages, std::span<const StepEndSeconds> ends) const;
  /// Never above `step`, and without a simulation.
  double step_bound(std::span<const StageSeconds> stages, std::span<const StepEndSeconds> ends) const;
  /// The same for another number of micro-batches, more than one where there were more than one.
  StagePricer with_micro_batches(std::int64_t micro_batches) const;
  /// What of `step` neither the cut nor the pipeline changes.
  double fixed() const;

 private:
  const CostInputs& inputs_;
  const LayerCosts& costs_;
  const ScheduleOrders& orders_;
  ShardKey shards_;
  JobShape job_;
  ModuleSplit split_;
};

}  // namespace cost_models
