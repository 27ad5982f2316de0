// A cut of the layers as even as it goes, and what its stages hold by how many layers they recompute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost_models/stage_cost.h"
#include "specs/language/model.h"
#include "specs/plan/placement.h"

namespace planner {

/// Few stages and few ranks differ: what each kind of them holds is made once.
class EvenCut {
 public:
  /// What a stage or a rank holds, by recomputed layers: from none to all. Of a rank: of each of its stages.
  using ByRecomputed = std::vector<cost_models::UnitCounts>;

  EvenCut(const specs::ModelSpec& model, const specs::RegularPlacement& outer);

  struct Stage {
    specs::UnitRange units;
    std::size_t rank = 0;
    std::size_t kind = 0;
  };
  struct Rank {
    std::int64_t layers = 0;  ///< of its smallest stage
    std::size_t kind = 0;
  };
  const std::vector<Stage>& stages() const { return stages_; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  const std::vector<ByRecomputed>& stage_kinds() const { return stage_kinds_; }
  const std::vector<ByRecomputed>& rank_kinds() const { return rank_kinds_; }

 private:
  std::vector<Stage> stages_;
  std::vector<Rank> ranks_;
  std::vector<ByRecomputed> stage_kinds_;
  std::vector<ByRecomputed> rank_kinds_;
};

}  // namespace planner
