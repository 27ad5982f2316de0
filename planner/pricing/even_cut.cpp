#include "planner/pricing/even_cut.h"

#include <algorithm>

#include "planner/pricing/stage_chain.h"

namespace planner {
namespace {

std::size_t kind_of(EvenCut::ByRecomputed held, std::vector<EvenCut::ByRecomputed>& kinds) {
  const auto known = std::find(kinds.begin(), kinds.end(), held);
  const auto kind = static_cast<std::size_t>(known - kinds.begin());
  if (known == kinds.end()) kinds.push_back(std::move(held));
  return kind;
}

EvenCut::ByRecomputed held_by(const specs::ModelSpec& model, const specs::RegularPlacement& outer,
                              specs::PipelineStage stage) {
  const std::int64_t blocks = specs::block_count(model);
  EvenCut::ByRecomputed held;
  for (std::int64_t layers = 0; layers <= specs::layers_touched(stage.units, blocks); ++layers) {
    set_recomputation(outer, blocks, layers, stage);
    held.push_back(cost_models::unit_counts(model, stage));
  }
  return held;
}

/// A stage recomputes no more layers than it has.
void add(const EvenCut::ByRecomputed& stage, EvenCut::ByRecomputed& rank) {
  if (rank.empty()) rank.resize(1);
  if (stage.size() > rank.size()) rank.resize(stage.size(), rank.back());
  for (std::size_t layers = 0; layers < rank.size(); ++layers)
    rank[layers] += stage[std::min(layers, stage.size() - 1)];
}

}  // namespace

EvenCut::EvenCut(const specs::ModelSpec& model, const specs::RegularPlacement& outer)
    : ranks_(static_cast<std::size_t>(outer.pipeline)) {
  const std::int64_t blocks = specs::block_count(model);
  std::vector<ByRecomputed> of_rank(ranks_.size());
  for (Rank& rank : ranks_) rank.layers = blocks;
  for (const specs::PipelineStage& stage : specs::regular_placement(outer, blocks).stages) {
    const auto rank = static_cast<std::size_t>(stage.pipeline_rank);
    const std::size_t kind = kind_of(held_by(model, outer, stage), stage_kinds_);
    add(stage_kinds_[kind], of_rank[rank]);
    ranks_[rank].layers = std::min(ranks_[rank].layers, specs::layers_touched(stage.units, blocks));
    stages_.push_back({stage.units, rank, kind});
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].kind = kind_of(std::move(of_rank[rank]), rank_kinds_);
}

}  // namespace planner
