// The price of one rank of each pipeline rank, from which both the quick and the full estimate are made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/step_time.h"
#include "specs/plan/placement.h"

namespace cost_models {

/// Everything of a placement that all its pipeline ranks share.
struct JobShape {
  StepShape step;
  std::int64_t micro_batch = 1;
  bool sequence_parallel = false;
};

/// A run of pipeline ranks with equal work. `first_rank` is the one that keeps the most activations.
struct RankRun {
  UnitCounts counts;
  std::int64_t first_rank = 0;
  std::int64_t ranks = 1;
  bool operator==(const RankRun&) const = default;
};

/// How a placement whose stages all have one mesh cuts the model, in order of rank.
std::vector<RankRun> rank_runs(const specs::ModelSpec& model, const specs::Placement& placement);

RankSeconds rank_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                         const ShardKey& shards, double micro_batch, TermSeconds* terms = nullptr);

RankLoad rank_load(const JobShape& job, const LayerCosts& costs, const UnitCounts& counts,
                   const ShardKey& shards, std::int64_t pipeline_rank, std::int64_t output_tensor,
                   bool tied_embeddings);

LayerKey layer_key(const specs::RegularPlacement& placement);
LayerKey layer_key(const specs::Placement& placement, const specs::PipelineStage& stage);
ShardKey shard_key(const specs::RegularPlacement& placement);
ShardKey shard_key(const specs::Placement& placement, const specs::PipelineStage& stage);
JobShape job_shape(const CostInputs& inputs, const specs::RegularPlacement& placement);
JobShape job_shape(const CostInputs& inputs, const specs::Placement& placement);

/// The step of a job whose ranks are `runs`, at most 16 of them, all with the placement's mesh. No
/// allocation.
double regular_step_seconds(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                            const ShardKey& shards, std::span<const RankRun> runs);

}  // namespace cost_models
