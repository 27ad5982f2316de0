// The price of the stages and ranks of a placement, from which both the quick and the full estimate are made.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/step_time.h"
#include "specs/plan/placement.h"

namespace cost_models {

/// Everything of a placement that all its pipeline ranks share.
struct JobShape {
  StepShape step;
  Transfers transfers;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false;
  double way() const { return transfers.way(step.pipeline.ranks); }
};

/// A run of pipeline ranks with equal work. `first_rank` is the one that keeps the most activations.
struct RankRun {
  UnitCounts counts;
  std::vector<UnitCounts> chunks;  ///< of each of its stages; empty with one
  std::int64_t first_rank = 0;
  std::int64_t ranks = 1;
  /// Its stages, its first one's kind before the others: the first run of such stages, and how many there
  /// are.
  struct Stages {
    std::size_t run = 0;
    double stages = 0;
    bool operator==(const Stages&) const = default;
  };
  std::vector<Stages> stages;
  bool operator==(const RankRun&) const = default;
};

/// A run of stages with equal work.
struct StageRun {
  UnitCounts counts;
  std::int64_t stages = 1;
  bool operator==(const StageRun&) const = default;
};

/// How a placement whose stages all have one mesh cuts the model.
struct PipelineCut {
  std::vector<RankRun> ranks;    ///< in order of rank
  std::vector<StageRun> stages;  ///< in the order the data flows
};

PipelineCut pipeline_cut(const specs::ModelSpec& model, const specs::Placement& placement);

/// One micro-batch on one stage, activation offload included. With `terms`, adds each term's share.
StageSeconds placed_stage_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                                  const ShardKey& shards, double micro_batch, TermSeconds* terms = nullptr);

/// What a rank with these units does after its last backward pass.
StepEndSeconds rank_end_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                                const ShardKey& shards);

RankLoad rank_load(const JobShape& job, const LayerCosts& costs, const UnitCounts& counts,
                   const ShardKey& shards, std::int64_t pipeline_rank, const ModuleSplit& split,
                   bool tied_embeddings);

LayerKey layer_key(const specs::RegularPlacement& placement);
LayerKey layer_key(const specs::Placement& placement, const specs::PipelineStage& stage);
ShardKey shard_key(const specs::RegularPlacement& placement);
ShardKey shard_key(const specs::Placement& placement, const specs::PipelineStage& stage);
JobShape job_shape(const CostInputs& inputs, const specs::RegularPlacement& placement);
JobShape job_shape(const CostInputs& inputs, const specs::Placement& placement);

/// The step of a job that is cut so, all stages with the placement's mesh.
double regular_step_seconds(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                            const ShardKey& shards, const PipelineCut& cut, const ScheduleOrders& orders);
/// Never above it, and without a simulation.
double regular_step_bound(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                          const ShardKey& shards, const PipelineCut& cut);

}  // namespace cost_models
