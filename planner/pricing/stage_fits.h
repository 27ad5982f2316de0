// Which part of a chain of units fits as which stage of an outer point with one stage a rank, and with how
// many recomputed layers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cost_models/stage_pricer.h"
#include "planner/pricing/partition_problem.h"
#include "specs/language/search.h"
#include "specs/plan/placement.h"

namespace planner {

/// Which numbers of recomputed layers a stage may have.
class RecomputedLayers {
 public:
  /// A number of its own for each stage: any, or one that [search] names.
  RecomputedLayers(const specs::SearchSpec& search, const specs::RegularPlacement& outer);
  /// So many of every stage, or all where it has no more.
  static RecomputedLayers of_every_stage(std::int64_t layers);

  std::int64_t choices(std::int64_t layers) const;
  /// The choice of that index, ascending.
  std::int64_t at(std::int64_t index, std::int64_t layers) const {
    if (of_every_stage_ > 0) return std::min(of_every_stage_, layers);
    return any_ ? index : list_[static_cast<std::size_t>(index)];
  }
  /// The number of a stage with so many layers, where every stage has but one.
  std::optional<std::int64_t> only(std::int64_t layers) const {
    if (of_every_stage_ > 0) return std::min(of_every_stage_, layers);
    return !any_ && list_.size() == 1 && list_.front() == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  bool allows_none() const { return any_ || (!list_.empty() && list_.front() == 0); }
  bool allows_some() const { return any_ || of_every_stage_ > 0 || (!list_.empty() && list_.back() > 0); }

  /// The fewest layers for which `fits` holds; with `some` at least one. The first recomputed layer may cost
  /// more than it frees (it is whole again while its backward pass runs), and so may the last, whose backward
  /// pass runs first, while all others are held; in between more never fit worse.
  template <class Fits>
  std::optional<std::int64_t> fewest(std::int64_t layers, bool some, Fits&& fits) const {
    const bool none = allows_none();
    if (none && !some && fits(0)) return 0;
    const std::int64_t last = choices(layers) - 1;
    std::int64_t low = none ? 1 : 0, high = last;
    if (high < low) return std::nullopt;
    if (high > low && at(high, layers) == layers) --high;
    if (!fits(at(high, layers)))
      return high < last && fits(at(last, layers)) ? std::optional(at(last, layers)) : std::nullopt;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (fits(at(middle, layers)))
        high = middle;
      else
        low = middle + 1;
    }
    return at(low, layers);
  }

 private:
  RecomputedLayers() = default;
  bool any_ = false;
  std::int64_t of_every_stage_ = 0;
  std::vector<std::int64_t> list_;
};

/// Its first `recomputed` layers as the outer point recomputes, the others not.
void set_recomputation(const specs::RegularPlacement& outer, std::int64_t blocks, std::int64_t recomputed,
                       specs::PipelineStage& stage);

/// The chain of a model's units between the places where it may be cut.
class ChainPieces {
 public:
  ChainPieces(const specs::ModelSpec& model, bool inside_layers);

  /// Begin of the chain, places for cuts, its end: each stage holds at least one attention or FFN.
  const std::vector<std::int64_t>& places() const { return places_; }
  bool inside_layers() const { return inside_layers_; }
  /// Of each piece, nothing recomputed.
  const std::vector<cost_models::UnitCounts>& counts() const { return counts_; }
  /// The first part of the chain, of those as long, that holds the same.
  StagePart like(const StagePart& part) const {
    const auto at = static_cast<std::size_t>(part.first);
    const std::int64_t shift = part.end <= run_end_[at] ? run_shift_[at] : 0;
    return {part.first - shift, part.end - shift, part.recomputed_layers};
  }

 private:
  void find_runs();

  std::vector<std::int64_t> places_;
  bool inside_layers_ = false;
  std::vector<cost_models::UnitCounts> counts_;
  /// By unit: where the run of alike pieces that it stands in ends, and how far into it the unit is.
  std::vector<std::int64_t> run_end_, run_shift_;
};

/// The devices of one stage.
struct StageDevices {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  const cost_models::StagePricer* pricer = nullptr;
  std::int64_t device_bytes = 0;
  std::int64_t host_bytes_per_node = 0;
};

/// As many as there are pipeline ranks.
std::vector<StageDevices> same_devices(const cost_models::StagePricer& pricer,
                                       const specs::RegularPlacement& outer, std::int64_t device_bytes,
                                       std::int64_t host_bytes);

class StageFits {
 public:
  /// `devices` by stage, as many as the outer point has pipeline ranks. Keeps references.
  StageFits(std::vector<StageDevices> devices, const specs::RegularPlacement& outer, std::int64_t blocks,
            const ChainPieces& pieces, const RecomputedLayers& allowed);

  /// From now on this stage recomputes at least one layer.
  void recompute_in(std::int64_t stage);

  /// The part with the fewest recomputed layers that fits as stage `stage`; nothing where none does. What
  /// holds more never fits with fewer.
  std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const;
  /// Whether the whole chain can be cut into parts that fit.
  bool any_partition() const;

  const StageDevices& devices(std::int64_t stage) const { return devices_[static_cast<std::size_t>(stage)]; }
  cost_models::UnitCounts counts_of(const StagePart& part) const;
  cost_models::StagePricer::Bytes memory(std::int64_t stage, const StagePart& part) const {
    return devices(stage).pricer->memory(stage, counts_of(part));
  }

 private:
  bool fits(std::int64_t stage, const StagePart& part) const;
  bool reaches(std::int64_t stage, const StagePart& part) const;
  std::size_t farthest_end(std::int64_t stage, std::size_t first, std::size_t least, std::size_t most) const;

  const std::vector<StageDevices> devices_;
  const specs::RegularPlacement& outer_;
  const std::int64_t blocks_;
  const ChainPieces& pieces_;
  const RecomputedLayers& allowed_;
  const bool unlimited_;  ///< in memory
  std::int64_t recomputing_ = -1;
  mutable specs::PipelineStage scratch_;
  mutable std::unordered_map<std::int64_t, std::int64_t> fitted_;  ///< recomputed layers; below 0: never
  /// Of a stage that begins there: up to which end it is known to fit, and from which on not.
  struct Reach {
    std::int32_t fits = -1;
    std::int32_t exceeds = std::numeric_limits<std::int32_t>::max();
  };
  mutable std::vector<Reach> reaches_;  ///< by stage and first unit
};

}  // namespace planner
