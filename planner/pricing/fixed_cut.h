// A cut that is given: what is left to choose is how many layers each rank recomputes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/pricing/stage_chain.h"
#include "specs/plan/placement.h"

namespace planner {

/// Units of the stages of a cut as even as it goes.
struct EvenCut {
  std::vector<specs::UnitRange> units;            ///< by stage
  std::vector<std::vector<std::size_t>> of_rank;  ///< stages
  std::vector<std::int64_t> layers;               ///< of each rank's smallest stage
};

/// Raises the peaks to a rank's memory.
inline void note_memory(const cost_models::StagePricer::Bytes& bytes, cost_models::QuickCost& cost) {
  cost.peak_device_bytes = std::max(cost.peak_device_bytes, bytes.device);
  cost.peak_host_bytes_per_node = std::max(cost.peak_host_bytes_per_node, bytes.host_per_node);
}

class FixedCut {
 public:
  FixedCut(const cost_models::StagePricer& pricer, const specs::RegularPlacement& outer, const EvenCut& cut,
           std::int64_t blocks)
      : pricer_(pricer), outer_(outer), cut_(cut), blocks_(blocks) {}

  std::size_t ranks() const { return cut_.of_rank.size(); }
  std::int64_t layers(std::size_t rank) const { return cut_.layers[rank]; }

  cost_models::StagePricer::Bytes memory(std::size_t rank, std::int64_t recomputed) {
    cost_models::UnitCounts counts;
    for (const std::size_t stage : cut_.of_rank[rank]) counts += counts_of(stage, recomputed);
    return pricer_.memory(static_cast<std::int64_t>(rank), counts);
  }

  /// Everything timed, nothing simulated.
  void set(const std::vector<std::int64_t>& recomputed) {
    stages_.assign(cut_.units.size(), {});
    ends_.clear();
    of_rank_.assign(ranks(), {});
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      for (const std::size_t stage : cut_.of_rank[rank]) {
        const cost_models::UnitCounts counts = counts_of(stage, recomputed[rank]);
        of_rank_[rank] += counts;
        stages_[stage] = pricer_.stage(counts);
      }
      ends_.push_back(pricer_.end(of_rank_[rank]));
    }
    recomputed_ = recomputed;
  }
  double bound() const { return pricer_.step_bound(stages_, ends_); }
  double step_seconds() const { return pricer_.step(stages_, ends_); }

  cost_models::QuickCost cost() const {
    cost_models::QuickCost cost;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      note_memory(pricer_.memory(static_cast<std::int64_t>(rank), of_rank_[rank]), cost);
    cost.step_seconds = step_seconds();
    return cost;
  }

  std::vector<StagePart> parts() const {
    std::vector<StagePart> parts(cut_.units.size());
    for (std::size_t rank = 0; rank < ranks(); ++rank)
      for (const std::size_t stage : cut_.of_rank[rank]) {
        const specs::UnitRange& units = cut_.units[stage];
        parts[stage] = {units.first, units.end,
                        std::min(recomputed_[rank], specs::layers_touched(units, blocks_))};
      }
    return parts;
  }

 private:
  cost_models::UnitCounts counts_of(std::size_t stage, std::int64_t recomputed) {
    scratch_.units = cut_.units[stage];
    set_recomputation(outer_, blocks_, std::min(recomputed, specs::layers_touched(scratch_.units, blocks_)),
                      scratch_);
    return cost_models::unit_counts(pricer_.model(), scratch_);
  }

  const cost_models::StagePricer& pricer_;
  const specs::RegularPlacement& outer_;
  const EvenCut& cut_;
  std::int64_t blocks_;
  specs::PipelineStage scratch_;
  std::vector<cost_models::StageSeconds> stages_;
  std::vector<cost_models::StepEndSeconds> ends_;
  std::vector<cost_models::UnitCounts> of_rank_;
  std::vector<std::int64_t> recomputed_;
};

}  // namespace planner
