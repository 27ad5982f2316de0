// One step of the whole job from its stages: the pipeline with each rank's gradient reduction, then what all
// ranks do together.
#pragma once

#include <cstdint>
#include <span>

#include "cost_models/cost_inputs.h"
#include "cost_models/pipeline.h"
#include "cost_models/stage_cost.h"

namespace cost_models {

/// What does not depend on the rank.
struct StepShape {
  PipelineShape pipeline;
  double tensor = 1;
};

/// What a step is made of; all that its price depends on.
struct StepParts {
  std::span<const StageSeconds> stages;  ///< in the order the data flows
  std::span<const double> transfers;  ///< exposed, one way, over the boundary after each stage but the last
  std::span<const StepEndSeconds> ends;  ///< by pipeline rank
};

/// A step, told apart; the parts add up to what `step_seconds` gives.
struct StepSeconds {
  double work = 0;      ///< of the slowest rank
  double transfer = 0;  ///< what the step would be shorter without transfers between ranks
  double bubble = 0;    ///< the rest of the pipeline, waiting for another rank's reduction included
  StepEndSeconds end;   ///< the slowest rank's reduction, and the longest update
  double fixed = 0;
  double late_update = 0;  ///< part of `end`: what a delayed update takes longer than everything else
  double total() const { return work + transfer + bubble + end.total() + fixed; }
};

/// Ranks of neighbouring stages that lie in one node talk over its link; a boundary that any replica crosses
/// between nodes takes as long as that one.
Transfers boundary_transfers(const CostInputs& inputs, const ShardKey& shards, double micro_batch,
                             double tensor);

/// Where the experiment says that stages are cut so that all ranks take equally long, makes them so.
void balance_stages(const CostInputs& inputs, std::span<StageSeconds> stages);

/// What every step takes beside its pipeline and its ends.
double fixed_seconds(const CostInputs& inputs, const StepShape& shape);

/// Never above step_seconds, and without a simulation.
double step_lower_bound(const CostInputs& inputs, const StepShape& shape, const StepParts& parts);

/// The same from runs of alike ranks, with the end of each run's ranks.
double step_lower_bound(const CostInputs& inputs, const StepShape& shape, std::span<const AlikeRanks> ranks,
                        std::span<const StepEndSeconds> ends, const Transfers& transfers);

double step_seconds(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                    const ScheduleOrders& orders);

/// `slowest` is the pipeline rank whose account is given.
StepSeconds step_account(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                         std::size_t slowest, const ScheduleOrders& orders);

}  // namespace cost_models
