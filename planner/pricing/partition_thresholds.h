// Whether any partition stays within a threshold, stage by stage.
//
// For a threshold τ let each stage in turn take as much as fits and stays within τ. Exchange: in any
// partition within τ let the first stage that takes less take this much; the parts after it start later (or
// end up empty and are refilled from the last), hold no more, and stay within τ and in memory. So τ is
// reached by some partition if and only if it is by this one.
//
// What stage 0 does after its last backward pass counts for every stage and grows with its end. For a
// threshold, the smallest end e that is possible is a fixed point: the later stages, filled from the last
// within the threshold less what stage 0 adds at its smallest end, leave stage 0 at least up to e_1; less
// what it adds at e_1, up to e_2; and so on until e no longer moves. Every partition within the threshold
// ends stage 0 at e or later, where its own path and what it adds are no smaller.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "planner/pricing/partition_problem.h"

namespace planner {

/// Indices into the problem's places, where stages end.
using StageEnds = std::vector<std::size_t>;

class PartitionThresholds {
 public:
  /// Keeps a reference.
  explicit PartitionThresholds(const PartitionProblem& problem)
      : problem_(problem),
        places_(problem.places()),
        stages_(static_cast<std::size_t>(problem.stages())),
        goes_back_(problem.goes_back()) {}

  std::size_t stages() const { return stages_; }
  std::size_t last_place() const { return places_.size() - 1; }
  /// Stages after `stage` each need a place of their own.
  std::size_t farthest_end(std::size_t stage) const { return last_place() - (stages_ - 1 - stage); }
  std::optional<StagePart> part(std::size_t stage, std::size_t first, std::size_t end) const {
    return problem_.fitted(static_cast<std::int64_t>(stage), places_[first], places_[end]);
  }
  std::vector<StagePart> parts_of(const StageEnds& ends) const;

  bool any_fits() const;
  /// A partition that stays within; empty: none does.
  StageEnds within(double seconds) const;
  /// The least threshold that a partition stays within, to the tolerance from below, and a partition that
  /// stays within it to the tolerance from above. Empty where nothing fits.
  struct Least {
    double seconds = 0;
    StageEnds ends;
  };
  Least least(double tolerance) const;
  /// Where each stage may begin at the earliest, so that it and all after it stay within.
  std::vector<std::size_t> earliest_starts(double seconds) const;

 private:
  /// What stages may take.
  struct Threshold {
    double own = 0;   ///< until a rank has done what it does by itself
    double back = 0;  ///< until the last backward pass of stage 0
  };
  Threshold threshold(double seconds, std::size_t first_end) const;
  bool stays(std::size_t stage, std::size_t first, std::size_t end, const Threshold& threshold) const;
  double taken(std::size_t stage, std::size_t first, std::size_t end, double after_first) const;
  std::size_t reach(std::size_t stage, std::size_t first, std::size_t least, std::size_t most,
                    const Threshold& threshold) const;
  std::size_t earliest_start(std::size_t stage, std::size_t end, const Threshold& threshold) const;
  std::optional<std::size_t> earliest_second(const Threshold& threshold) const;
  std::optional<std::size_t> first_end_within(double seconds) const;
  StageEnds filled(std::size_t first_end, const Threshold& threshold) const;
  double after_first(std::size_t end) const;
  double taken(const StageEnds& ends) const;

  const PartitionProblem& problem_;
  const std::span<const std::int64_t> places_;
  const std::size_t stages_;
  const bool goes_back_;
};

}  // namespace planner
