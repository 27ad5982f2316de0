// The stages of an outer point with one stage a rank, as a chain that stage_partition.h cuts: each stage on
// devices of its own speed and memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
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

class StageChain final : public PartitionProblem {
 public:
  /// `devices` by stage, as many as the outer point has pipeline ranks. Keeps references. The step is priced
  /// with the pricer whose transfers take longest.
  StageChain(std::vector<StageDevices> devices, const specs::RegularPlacement& outer, std::int64_t blocks,
             const ChainPieces& pieces, const RecomputedLayers& allowed);

  /// From now on this stage recomputes at least one layer.
  void recompute_in(std::int64_t stage);

  std::int64_t stages() const override { return ranks_; }
  std::span<const std::int64_t> places() const override { return places_; }
  std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const override;
  double path(std::int64_t stage, const StagePart& part) const override;
  double after(std::int64_t stage, const StagePart& part) const override {
    return end_of(stage, part).gradient_reduction;
  }
  bool goes_back() const override { return !zero_bubble(); }
  double back(std::int64_t stage, std::int64_t first) const override;
  double pair_path(std::int64_t stage, const StagePart& part, const StagePart& next) const override;
  bool takes_long(std::int64_t stage, const StagePart& part) const override {
    return work_of(stage, part) >= long_work_;
  }
  double run_path(std::int64_t stage, const StagePart& part, std::int64_t length) const override;
  double price(std::span<const StagePart> parts) const override;

  cost_models::StagePricer::Bytes memory(std::int64_t stage, const StagePart& part) const;
  /// How many partitions the best one is worth looking at.
  std::int64_t worthwhile_prices(Effort effort) const;

 private:
  const cost_models::StagePricer& pricer(std::int64_t stage) const {
    return *devices_[static_cast<std::size_t>(stage)].pricer;
  }
  cost_models::UnitCounts counts_of(const StagePart& part) const;
  cost_models::StageSeconds seconds_of(const cost_models::StagePricer& kind,
                                       const cost_models::UnitCounts& counts) const;
  cost_models::StageSeconds least_seconds_of(const cost_models::UnitCounts& counts) const;
  void add_up_places();
  void look_at_longest();
  double simulated_micro_batches() const;
  double way(std::int64_t stage) const { return way_[static_cast<std::size_t>(stage)]; }
  /// From there to the last rank.
  double way_on(std::int64_t stage) const { return way_.back() - way(stage); }
  double run_seconds(std::int64_t stage, std::int64_t length) const;
  double work_of(std::int64_t stage, const StagePart& part) const;
  double least_repeated_layer() const;
  bool fits(std::int64_t stage, const StagePart& part) const;
  bool zero_bubble() const;
  double surely_repeated(const StagePart& part) const;
  double pipeline_path(std::int64_t stage, const StagePart& part, double work) const;
  /// Seconds that follow for all ranks at the end of the step, at least.
  double at_end(std::int64_t stage, const StagePart& part) const {
    return fixed_ + std::max(least_update_, end_of(stage, part).update);
  }
  /// What a rank does after its last backward pass.
  struct End {
    double gradient_reduction = -1;  ///< below 0: not known yet
    double update = 0;
  };
  const End& end_of(std::int64_t stage, const StagePart& part) const;

  const std::vector<StageDevices> devices_;
  const std::vector<const cost_models::StagePricer*> kinds_;  ///< each pricer once
  const specs::RegularPlacement& outer_;
  const std::int64_t blocks_;
  const ChainPieces& pieces_;
  const std::vector<std::int64_t>& places_;
  const RecomputedLayers& allowed_;
  const std::int64_t ranks_;
  const cost_models::StagePricer* step_pricer_;
  std::vector<double> way_;  ///< transfers from the first rank to each
  const bool halves_;        ///< whether cuts fall inside layers
  const bool alike_;         ///< all devices
  const bool gathers_;       ///< ZeRO-3 (2) moves layers meanwhile: a stage takes longer than its units
  const bool unlimited_;     ///< in memory
  std::int64_t recomputing_ = -1;
  double least_repeated_ = 0;
  double fixed_ = 0;
  double long_work_ = std::numeric_limits<double>::infinity();  ///< of the stage that takes longest, at least
  double least_update_ = 0;                                     ///< of the rank whose update takes longest
  /// Of all units before and from a place, on the fastest devices, none recomputed.
  std::vector<cost_models::StageSeconds> before_, after_;
  mutable std::vector<double> run_seconds_;  ///< by stage and length; below 0: not known yet
  mutable specs::PipelineStage scratch_;
  mutable std::unordered_map<std::int64_t, std::int64_t> fitted_;  ///< recomputed layers; below 0: never
  mutable std::unordered_map<std::int64_t, double> works_;         ///< of parts, where they are no sums
  mutable std::vector<std::vector<std::vector<End>>> ends_;        ///< by kind of devices, first and end
  std::vector<std::size_t> kind_of_stage_;
};

/// The best of the chain's partitions, where one up to `enough` is of use; with `recompute_somewhere` of
/// those that recompute a layer. Nothing where none fits.
std::optional<Partition> best_cut(StageChain& chain, bool recompute_somewhere, Effort effort = Effort::whole,
                                  double enough = any_price);

}  // namespace planner
