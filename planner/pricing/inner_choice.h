// The inner choices of an outer point: where stages are cut, and how many layers of each are recomputed.
//
// Cuts are free where [search] uneven_stages and the stack allow it and a rank holds one stage: each stage
// holds at least one attention or FFN, the first the embedding, the last the output layer; cuts fall between
// an attention and its FFN where [search] cuts_inside_layers and the stack allow that, else between layers.
// Otherwise layers are cut as evenly as they go.
//
// Recomputed layers follow the stack's profile (`recomputed_layers`). "all": a stage that recomputes does so
// in all its layers. "alike": with full recomputation one number from 1 to what the largest stage of the even
// cut holds, for all stages (all layers of one that has no more). "each": every stage (of a rank that holds
// several: all of them alike) has a number of its own from none to all; recomputing nowhere is the choice of
// `recomputation = none` and not repeated. [search] recomputed_layers leaves the numbers that it names.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/pricing/fixed_cut.h"
#include "planner/pricing/stage_chain.h"
#include "planner/space/count.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

/// The best inner choice that fits; where none does, the even cut with all layers recomputed.
struct InnerChoice {
  std::vector<StagePart> parts;  ///< by stage; empty: the even cut, all stages treated alike
  cost_models::QuickCost cost;
  /// No choice that fits takes less; equals the cost's where that is proven best.
  double least_step_seconds = 0;
  bool bounds_all = false;  ///< nor does any that does not fit
  bool given_up = false;    ///< none that fits is of use; only `least_step_seconds` is meant
};

class InnerChoices {
 public:
  /// Keeps references to the experiment and the estimator.
  InnerChoices(const specs::Experiment& experiment, const specs::StackSpec& stack,
               const cost_models::Estimator& estimator);

  /// What takes longer than `enough` is of no use and not looked for.
  InnerChoice best(const specs::RegularPlacement& outer, double enough_seconds = any_price,
                   Effort effort = Effort::whole) const;
  specs::Placement placement(const specs::RegularPlacement& outer, const InnerChoice& choice) const;

  /// How many there are, exactly.
  Count count(const specs::RegularPlacement& outer) const;

  /// Whether any choice fits the devices, were host memory unlimited, and the other way round.
  struct Fits {
    bool device = true;
    bool host = true;
  };
  Fits any_fits(const specs::RegularPlacement& outer) const;
  /// Of free cuts where none fits: the choice that lacks the least memory, if that is less than so many
  /// bytes.
  std::optional<InnerChoice> nearest(const specs::RegularPlacement& outer, std::int64_t lacking_bytes) const;

  /// No choice takes less, whatever memory it needs: all micro-batches' work, shared evenly by the ranks, and
  /// the mean rank's end of a step; for a cut that is given, its own bound.
  double least_step_seconds(const specs::RegularPlacement& outer) const;
  /// Whether every choice surely takes longer: by the least bound of a cut (stage_partition.h), or the given
  /// cut's step with nothing recomputed.
  bool take_longer(const specs::RegularPlacement& outer, double seconds) const;

  bool cuts_are_free(const specs::RegularPlacement& outer) const;
  const ChainPieces& pieces() const { return pieces_; }
  /// Whether the point has no other choice than the even cut, all layers treated alike.
  bool only_one(const specs::RegularPlacement& outer) const;

 private:
  bool numbers_are_free(const specs::RegularPlacement& outer) const;
  /// Numbers for all stages alike, ascending.
  std::vector<std::int64_t> numbers_alike(const specs::RegularPlacement& outer) const;
  /// The only numbers, where they are not free.
  RecomputedLayers given_numbers(const specs::RegularPlacement& outer) const;
  /// The same point with nothing recomputed.
  static specs::RegularPlacement recomputing_nothing(const specs::RegularPlacement& outer);
  struct Wanted {
    double enough_seconds;
    Effort effort;
  };
  bool longer_with(const specs::RegularPlacement& point, const RecomputedLayers& numbers, double seconds,
                   double& known) const;
  InnerChoice of_partition(const StageChain& chain, const Partition& partition) const;
  /// With as many recomputed layers as any choice has.
  RecomputedLayers most_recomputed(const specs::RegularPlacement& outer) const;
  /// These return nothing where nothing fits.
  std::optional<InnerChoice> best_cut(const specs::RegularPlacement& outer, const Wanted& wanted) const;
  std::optional<InnerChoice> best_cut_of(StageChain& chain, bool some, const Wanted& wanted) const;
  /// Of a chain of which a partition is known to be within `wanted.enough_seconds`.
  std::optional<InnerChoice> solved_cut(StageChain& chain, bool some, const Wanted& wanted) const;
  std::optional<InnerChoice> best_plain_cut(const specs::RegularPlacement& outer,
                                            const std::vector<StageDevices>& devices,
                                            const Wanted& wanted) const;
  std::optional<InnerChoice> best_cut_alike(const specs::RegularPlacement& outer,
                                            const std::vector<StageDevices>& devices,
                                            const Wanted& wanted) const;
  std::optional<InnerChoice> best_of_even_cut(const specs::RegularPlacement& outer,
                                              const Wanted& wanted) const;
  bool any_fits(const specs::RegularPlacement& outer, std::int64_t device_bytes,
                std::int64_t host_bytes) const;
  Count count_of_cuts(const specs::RegularPlacement& outer) const;
  Count count_each(const specs::RegularPlacement& outer) const;
  Count count_each_of_free_cuts(std::int64_t stages) const;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  specs::RecomputedLayerNumbers numbers_;
  bool uneven_ = false;
  bool inside_layers_ = false;
  std::int64_t blocks_ = 0;
  ChainPieces pieces_;
  const EvenCut& even_cut(const specs::RegularPlacement& outer) const;

  mutable std::map<std::tuple<std::int64_t, std::int64_t, int>, Count> counts_;
  using CutKey =
      std::tuple<std::int64_t, std::int64_t, specs::ScheduleKind, specs::Recomputation, std::uint32_t>;
  mutable std::map<CutKey, EvenCut> even_cuts_;
  /// What is known of the time that a point takes at least, by hash.
  double& known_bound(const specs::RegularPlacement& point) const;
  mutable std::unordered_map<std::size_t, std::vector<std::pair<specs::RegularPlacement, double>>> known_;
};

}  // namespace planner
