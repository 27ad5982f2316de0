// The stages of an outer point with one stage a rank, as a chain that stage_partition.h cuts: each stage on
// devices of its own speed and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost_models/stage_pricer.h"
#include "planner/pricing/stage_partition.h"
#include "specs/language/search.h"
#include "specs/plan/placement.h"

namespace planner {

/// Which numbers of recomputed layers a stage may have.
class RecomputedLayers {
 public:
  RecomputedLayers(const specs::SearchSpec& search, const specs::RegularPlacement& outer);
  std::int64_t choices(std::int64_t layers) const;
  /// The choice of that index, ascending.
  std::int64_t at(std::int64_t index) const { return any_ ? index : list_[static_cast<std::size_t>(index)]; }
  bool allows_none() const { return any_ || (!list_.empty() && list_.front() == 0); }

  /// The fewest layers for which `fits` holds; with `some` at least one. The first recomputed layer may cost
  /// more than it frees (it is whole again while its backward pass runs); from then on more never fit worse.
  template <class Fits>
  std::optional<std::int64_t> fewest(std::int64_t layers, bool some, Fits&& fits) const {
    const bool none = allows_none();
    if (none && !some && fits(0)) return 0;
    std::int64_t low = none ? 1 : 0, high = choices(layers) - 1;
    if (high < low || !fits(at(high))) return std::nullopt;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (fits(at(middle)))
        high = middle;
      else
        low = middle + 1;
    }
    return at(low);
  }

 private:
  bool any_;
  std::vector<std::int64_t> list_;
};

/// Its first `recomputed` layers as the outer point recomputes, the others not.
void set_recomputation(const specs::RegularPlacement& outer, std::int64_t blocks, std::int64_t recomputed,
                       specs::PipelineStage& stage);

/// Begin of the chain, places for cuts, its end: each stage holds at least one attention or FFN.
std::vector<std::int64_t> places_for_cuts(std::int64_t blocks, bool inside_layers);

/// The devices of one stage.
struct StageDevices {
  const cost_models::StagePricer* pricer = nullptr;
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes_per_node = 0;
};

class StageChain final : public PartitionProblem {
 public:
  /// `devices` by stage, as many as the outer point has pipeline ranks. Keeps references. The step is priced
  /// with the pricer whose transfers take longest.
  StageChain(std::vector<StageDevices> devices, const specs::RegularPlacement& outer, std::int64_t blocks,
             std::vector<std::int64_t> places, const RecomputedLayers& allowed);

  /// From now on this stage recomputes at least one layer.
  void recompute_in(std::int64_t stage);

  std::int64_t stages() const override { return ranks_; }
  std::span<const std::int64_t> places() const override { return places_; }
  std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const override;
  double bound(std::int64_t stage, const StagePart& part) const override;
  double added_by_first(std::int64_t end) const override;
  double price(std::span<const StagePart> parts) const override;

  cost_models::StagePricer::Bytes memory(std::int64_t stage, const StagePart& part) const;

 private:
  const cost_models::StagePricer& pricer(std::int64_t stage) const {
    return *devices_[static_cast<std::size_t>(stage)].pricer;
  }
  cost_models::UnitCounts counts_of(const StagePart& part) const;
  cost_models::StageSeconds seconds_of(const cost_models::StagePricer& kind,
                                       const cost_models::UnitCounts& counts) const;
  cost_models::StageSeconds least_seconds_of(const StagePart& part) const;
  double least_repeated_layer() const;
  bool fits(std::int64_t stage, const StagePart& part) const;
  bool zero_bubble() const;
  double pipeline_bound(double stage, const StagePart& part, double work) const;

  const std::vector<StageDevices> devices_;
  const std::vector<const cost_models::StagePricer*> kinds_;  ///< each pricer once
  const specs::RegularPlacement& outer_;
  const std::int64_t blocks_;
  const std::vector<std::int64_t> places_;
  const RecomputedLayers& allowed_;
  const std::int64_t ranks_;
  const cost_models::StagePricer* step_pricer_;
  const bool halves_;   ///< whether cuts fall inside layers
  const bool gathers_;  ///< ZeRO-2 and 3 move layers meanwhile: a stage takes longer than its units
  std::int64_t recomputing_ = -1;
  double least_repeated_ = 0;
  double everywhere_ = 0;
  /// Of all units before and from a place, on the fastest devices, none recomputed.
  std::vector<cost_models::StageSeconds> before_, after_;
  mutable specs::PipelineStage scratch_;
  mutable std::unordered_map<std::int64_t, std::optional<StagePart>> fitted_;
  mutable std::unordered_map<std::int64_t, double> bounds_;  ///< of fitted parts
};

inline constexpr std::int64_t most_partitions_visited = 64;

/// The best of the chain's partitions; with `recompute_somewhere` of those that recompute a layer. Nothing
/// where none fits.
std::optional<Partition> best_cut(StageChain& chain, bool recompute_somewhere);

}  // namespace planner
