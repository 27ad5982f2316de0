// Whether any partition stays within a threshold with all that its paths show: stages one by one, neighbours
// in pairs and in runs, and what each rank does by itself before the gradients are back at the first stage.
//
// A dynamic program over (stage, first, end): all that the bounds of later stages see of the partitions of
// what is before are the largest of after_r - back_r so far and the length of the run of stages that take
// long. Only partitions matter for which no other has both as small.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pricing/partition_thresholds.h"

namespace planner {

class PartitionLayers {
 public:
  /// Keeps references.
  PartitionLayers(const PartitionProblem& problem, const PartitionThresholds& thresholds)
      : problem_(problem), thresholds_(thresholds), goes_back_(problem.goes_back()) {}

  /// A partition within; empty: none is.
  StageEnds within(double seconds);

  /// What later bounds see of the stages so far.
  struct Seen {
    StagePart last;
    double late = -any_price;  ///< the largest after_r - back_r
    std::int64_t run = 0;      ///< of stages that take long, up to the last
  };
  /// `seen` and then `part` as stage `stage`: what is seen then. Nothing where a bound is above `seconds`;
  /// `too_long` says that it is for longer parts, too.
  std::optional<Seen> followed(const Seen& seen, std::size_t stage, const StagePart& part, double seconds,
                               bool& too_long) const;

 private:
  struct State {
    Seen seen;
    std::uint32_t end = 0;     ///< place
    std::uint32_t before = 0;  ///< state of the stage before
  };
  void enter_first(double seconds, std::size_t least_end);
  void enter(std::size_t stage, double seconds, std::size_t least_end, std::size_t most_end);
  StageEnds ends_of(std::size_t state) const;

  const PartitionProblem& problem_;
  const PartitionThresholds& thresholds_;
  const bool goes_back_;
  std::vector<std::vector<State>> states_;  ///< by stage, ascending by end, then by what is late
};

}  // namespace planner
