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
#include "planner/pricing/stage_fits.h"
#include "planner/pricing/stage_partition.h"
#include "specs/plan/placement.h"

namespace planner {

class StageChain final : public PartitionProblem {
 public:
  /// `devices` by stage, as many as the outer point has pipeline ranks. Keeps references. The step is priced
  /// with the pricer whose transfers take longest.
  StageChain(const std::vector<StageDevices>& devices, const specs::RegularPlacement& outer,
             std::int64_t blocks, const ChainPieces& pieces, const RecomputedLayers& allowed);

  /// From now on this stage recomputes at least one layer.
  void recompute_in(std::int64_t stage) { fits_.recompute_in(stage); }

  std::int64_t stages() const override { return ranks_; }
  std::span<const std::int64_t> places() const override { return places_; }
  std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const override {
    return fits_.fitted(stage, first, end);
  }
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

  cost_models::StagePricer::Bytes memory(std::int64_t stage, const StagePart& part) const {
    return fits_.memory(stage, part);
  }
  /// How many partitions the best one is worth looking at.
  std::int64_t worthwhile_prices(Effort effort) const;

 private:
  const cost_models::StagePricer& pricer(std::int64_t stage) const { return *fits_.devices(stage).pricer; }
  cost_models::UnitCounts counts_of(const StagePart& part) const { return fits_.counts_of(part); }
  cost_models::StageSeconds seconds_of(const cost_models::StagePricer& kind,
                                       const cost_models::UnitCounts& counts) const;
  cost_models::StageSeconds least_seconds_of(const cost_models::UnitCounts& counts) const;
  void add_up_places();
  void look_at_longest();
  double simulated_micro_batches() const;
  double way(std::int64_t stage) const { return way_[static_cast<std::size_t>(stage)]; }
  /// From there to the last rank.
  double way_on(std::int64_t stage) const { return way_.back() - way(stage); }
  double turns_in_run(std::int64_t stage, std::int64_t length, std::int64_t micro_batches) const;
  double run_seconds(std::int64_t stage, std::int64_t length) const;
  double work_of(std::int64_t stage, const StagePart& part) const;
  double least_repeated_layer() const;
  bool zero_bubble() const;
  double surely_repeated(const StagePart& part) const;
  double longer_in_part(std::int64_t stage, const StagePart& part, double repeated) const;
  double pipeline_path(std::int64_t stage, const StagePart& part, double work, double repeated) const;
  void count_trips();
  double whole_trips_path(std::int64_t stage, const StagePart& part, double work, double repeated) const;
  /// Of whole trips, what a bound up to where the last one passes a stage is without turns.
  double trips_up_to(std::int64_t stage, std::int64_t first, double repeated) const {
    return trips_seconds_ + (trips_ + 1) * repeated - back(stage, first);
  }
  double whole_run_seconds(std::int64_t stage, std::int64_t length) const;
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

  StageFits fits_;
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
  double least_repeated_ = 0;
  double fixed_ = 0;
  double long_work_ = std::numeric_limits<double>::infinity();  ///< of the stage that takes longest, at least
  double least_update_ = 0;                                     ///< of the rank whose update takes longest
  /// Whole trips of 1F1B, one less than are taken; 0: none are counted.
  double trips_ = 0, trips_seconds_ = 0;
  double left_ = 0;    ///< micro-batches that they do not advance
  double beyond_ = 0;  ///< that are not simulated
  /// How often what is left goes from the first stage down to this one, and from here to the last.
  struct StageTurns {
    double down = 0, after_down = 0;
    double on = 0, after_on = 0;
  };
  std::vector<StageTurns> turns_;
  /// Of all units before and from a place, on the fastest devices, none recomputed.
  std::vector<cost_models::StageSeconds> before_, after_;
  /// By stage and length; below 0: not known yet.
  mutable std::vector<double> run_seconds_, whole_run_seconds_;
  mutable std::unordered_map<std::int64_t, double> works_;   ///< of parts, where they are no sums
  mutable std::vector<std::vector<std::vector<End>>> ends_;  ///< by kind of devices, first and end
  std::vector<std::size_t> kind_of_stage_;
};

/// The best of the chain's partitions, where one up to `enough` is of use; with `recompute_somewhere` of
/// those that recompute a layer. Nothing where none fits.
std::optional<Partition> best_cut(StageChain& chain, bool recompute_somewhere, Effort effort = Effort::whole,
                                  double enough = any_price);

}  // namespace planner
