#include "cost_models/stage_pricer.h"

#include <cmath>
#include <vector>

namespace cost_models {

StagePricer::StagePricer(const CostInputs& inputs, const LayerCosts& costs, const ScheduleOrders& orders,
                         const specs::RegularPlacement& outer)
    : inputs_(inputs),
      costs_(costs),
      orders_(orders),
      shards_(shard_key(outer)),
      job_(job_shape(inputs, outer)),
      split_(module_split(inputs.model, outer.modules, outer.tensor)) {}

StageSeconds StagePricer::stage(const UnitCounts& counts) const {
  return placed_stage_seconds(inputs_, costs_, counts, shards_, static_cast<double>(job_.micro_batch));
}

StageSeconds StagePricer::units(const UnitCounts& counts) const {
  UnitCounts priced = counts;
  if (inputs_.profile.options.layers_only) priced.embedding = priced.output = false;
  return unit_seconds(inputs_, costs_, priced, shards_);
}

StepEndSeconds StagePricer::end(const UnitCounts& counts) const {
  return rank_end_seconds(inputs_, costs_, counts, shards_);
}

StagePricer::Bytes StagePricer::memory(std::int64_t pipeline_rank, const UnitCounts& counts) const {
  const RankMemory memory = rank_memory(inputs_, rank_load(job_, costs_, counts, shards_, pipeline_rank,
                                                           split_, inputs_.model.tied_embeddings));
  return {std::llround(memory.total()), std::llround((memory.host_total()) * inputs_.devices_per_node)};
}

double StagePricer::step(std::span<const StageSeconds> stages, std::span<const StepEndSeconds> ends) const {
  const std::vector<double> transfers = job_.transfers.between_stages(job_.step.pipeline);
  return step_seconds(inputs_, job_.step, {stages, transfers, ends}, orders_);
}

double StagePricer::step_bound(std::span<const StageSeconds> stages,
                               std::span<const StepEndSeconds> ends) const {
  const std::vector<double> transfers = job_.transfers.between_stages(job_.step.pipeline);
  return step_lower_bound(inputs_, job_.step, {stages, transfers, ends});
}

StagePricer StagePricer::with_micro_batches(std::int64_t micro_batches) const {
  StagePricer other = *this;
  other.job_.step.pipeline.micro_batches = static_cast<double>(micro_batches);
  return other;
}

double StagePricer::fixed() const { return fixed_seconds(inputs_, job_.step); }

}  // namespace cost_models
