#include "planner/pricing/fixed_cut.h"

#include <algorithm>

namespace planner {
namespace {

/// A stage recomputes no more layers than it has.
std::size_t index_of(const EvenCut::ByRecomputed& held, std::int64_t recomputed) {
  return std::min(static_cast<std::size_t>(recomputed), held.size() - 1);
}

}  // namespace

FixedCut::FixedCut(const cost_models::StagePricer& pricer, const EvenCut& cut) : pricer_(pricer), cut_(cut) {
  for (const EvenCut::ByRecomputed& kind : cut.stage_kinds()) known_stages_.emplace_back(kind.size());
  for (const EvenCut::ByRecomputed& kind : cut.rank_kinds()) known_ends_.emplace_back(kind.size());
}

cost_models::StagePricer::Bytes FixedCut::memory(std::size_t rank, std::int64_t recomputed) const {
  const EvenCut::ByRecomputed& held = cut_.rank_kinds()[cut_.ranks()[rank].kind];
  return pricer_.memory(static_cast<std::int64_t>(rank), held[index_of(held, recomputed)]);
}

void FixedCut::set(const std::vector<std::int64_t>& recomputed) {
  stages_.clear();
  stages_.reserve(cut_.stages().size());
  for (const EvenCut::Stage& stage : cut_.stages()) {
    const EvenCut::ByRecomputed& held = cut_.stage_kinds()[stage.kind];
    const std::size_t index = index_of(held, recomputed[stage.rank]);
    auto& known = known_stages_[stage.kind][index];
    if (!known) known = pricer_.stage(held[index]);
    stages_.push_back(*known);
  }
  ends_.clear();
  ends_.reserve(ranks());
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const std::size_t kind = cut_.ranks()[rank].kind;
    const EvenCut::ByRecomputed& held = cut_.rank_kinds()[kind];
    const std::size_t index = index_of(held, recomputed[rank]);
    auto& known = known_ends_[kind][index];
    if (!known) known = pricer_.end(held[index]);
    ends_.push_back(*known);
  }
  recomputed_ = recomputed;
}

cost_models::QuickCost FixedCut::cost() const {
  cost_models::QuickCost cost;
  for (std::size_t rank = 0; rank < ranks(); ++rank) note_memory(memory(rank, recomputed_[rank]), cost);
  cost.step_seconds = step_seconds();
  return cost;
}

std::vector<StagePart> FixedCut::parts() const {
  std::vector<StagePart> parts;
  for (const EvenCut::Stage& stage : cut_.stages())
    parts.push_back(
        {stage.units.first, stage.units.end,
         static_cast<std::int64_t>(index_of(cut_.stage_kinds()[stage.kind], recomputed_[stage.rank]))});
  return parts;
}

}  // namespace planner
