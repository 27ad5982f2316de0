// How an outer point lies over the groups of a mixed cluster ([[cluster.group]]), all of whose devices are in
// use:
//
//   unequal stages   Each pipeline rank lies in one group, the ranks of a group stand together, in any order
//                    of the groups. Where cuts are free; one stage a rank.
//   unequal shares   Each data-parallel replica lies in one of two groups, and all replicas of a group run as
//                    many micro-batches, at least one. Stages are cut evenly, since the replicas share the
//                    cut.
//
// Groups are ranges of ranks, so that only the default order of the axes keeps a stage in one group.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "specs/language/experiment.h"
#include "specs/plan/placement.h"

namespace planner {

/// Shares of the replicas of two groups that add up to all micro-batches of a step, ascending in the first
/// group's: the replicas of group g run at(index)[g] micro-batches.
struct ReplicaShares {
  std::array<std::int64_t, 2> replicas{};
  std::array<std::int64_t, 2> step{1, 1};  ///< from one solution to the next, one up and one down
  std::int64_t first = 0;                  ///< the smallest share of group 0
  std::int64_t of_first = 0;               ///< group 1's share there
  std::int64_t count = 0;
  std::array<std::int64_t, 2> at(std::int64_t index) const {
    return {first + index * step[0], of_first - index * step[1]};
  }

  /// Where both groups would take equally long, one micro-batch taking them so many seconds.
  std::int64_t balanced(double seconds_of_0, double seconds_of_1) const {
    const double index =
        (static_cast<double>(of_first) * seconds_of_1 - static_cast<double>(first) * seconds_of_0) /
        (static_cast<double>(step[0]) * seconds_of_0 + static_cast<double>(step[1]) * seconds_of_1);
    return index > 0 ? static_cast<std::int64_t>(index) : 0;
  }

  /// Where the larger of the groups' seconds is smallest, in [low, high]: seconds(share, group) must not fall
  /// with the share, so that it is where they cross. Begins to look at `guess`.
  template <class Seconds>
  std::int64_t best(std::int64_t low, std::int64_t high, std::int64_t guess, Seconds&& seconds) const {
    const std::int64_t least = low;
    const auto crossed = [&](std::int64_t index) {
      return seconds(at(index)[0], 0) >= seconds(at(index)[1], 1);
    };
    // First in growing steps from the guess, then by halves.
    std::int64_t middle = std::clamp(guess, low, std::max(low, high - 1));
    bool below = false, above = false;
    for (std::int64_t stride = 1; low < high; stride *= 2) {
      const bool found = crossed(middle);
      (found ? above : below) = true;
      (found ? high : low) = found ? middle : middle + 1;
      const bool bracketed = above && below;
      middle = bracketed ? low + (high - low) / 2
                         : std::clamp(found ? high - stride : low + stride - 1, low, std::max(low, high - 1));
    }
    const auto longer = [&](std::int64_t index) {
      return std::max(seconds(at(index)[0], 0), seconds(at(index)[1], 1));
    };
    if (low > least && longer(low - 1) <= longer(low)) return low - 1;
    return low;
  }
};

class GroupLayouts {
 public:
  explicit GroupLayouts(const specs::Experiment& experiment);

  std::size_t groups() const { return devices_.size(); }
  std::int64_t devices(std::size_t group) const { return devices_[group]; }
  /// Of all devices.
  double share_of_devices(std::size_t group) const;

  /// Whether a pipeline rank of so many devices lies in one group.
  bool ranks_lie_in_groups(std::int64_t rank_devices) const;
  /// Whether a replica of so many devices lies in one group, and shares may be unequal.
  bool replicas_lie_in_groups(std::int64_t replica_devices) const;

  /// All orders of the groups along the pipeline.
  const std::vector<std::vector<std::size_t>>& orders() const { return orders_; }
  /// The group of each pipeline rank.
  std::vector<std::size_t> group_of_rank(const std::vector<std::size_t>& order,
                                         std::int64_t rank_devices) const;
  /// None where replicas do not lie in groups.
  ReplicaShares shares(std::int64_t replica_devices, std::int64_t micro_batches) const;

 private:
  std::vector<std::int64_t> devices_;
  bool unequal_shares_;
  std::vector<std::vector<std::size_t>> orders_;
};

bool is_mixed(const specs::ClusterSpec& cluster);

}  // namespace planner
