// Prices the outer points of a cluster of unlike nodes. How a point lies over the groups of nodes
// (group_layouts.h) is one of its inner choices, beside the cuts and the recomputed layers of its stages:
//
//   unequal stages   in every order of the groups, cut for the speed and the memory of their devices
//                    (stage_partition.h). The cut comes with a bound of its own, which makes the gap.
//   unequal shares   the shares that make the replicas of both groups end together (share_layout.h).
//
// A point that recomputes has, for each cut that fits without, choices that only take longer than the same
// point without recomputation: where that point is in the space, its bound is theirs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/pricing/inner_choice.h"
#include "planner/pricing/pricing.h"
#include "planner/pricing/share_layout.h"
#include "planner/pricing/stage_chain.h"
#include "planner/space/group_layouts.h"

namespace planner {

class MixedPricer final : public Pricer {
 public:
  /// Keeps references. Not for several threads at once.
  MixedPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
              const cost_models::Estimator& estimator);
  ~MixedPricer() override;

  /// The memory is that of the rank which has least room left, as if on the devices that have most.
  Price price(const specs::RegularPlacement& outer) const override;
  double step_bound(const specs::RegularPlacement& outer) const override;
  bool slower_in_larger_shares(specs::OffloadDevice optimizer) const override;
  Price price_of_choice(const specs::RegularPlacement& outer, const specs::Placement& choice) const override;
  Solved solve(const specs::RegularPlacement& outer, double enough, Effort effort) const override;
  Price least_memory(const specs::RegularPlacement& outer) const override;
  Price memory_of_nearest(const specs::RegularPlacement& outer) const override;
  double objective(double step_seconds, std::int64_t world_size) const override;
  specs::Placement placement(const specs::RegularPlacement& outer) const override;
  Count members(const specs::RegularPlacement& outer) const override;
  bool members_follow_shares() const override { return true; }
  std::int64_t usable_device_bytes() const override;
  std::int64_t usable_host_bytes() const override;

 private:
  /// What was found out about the last point: it is asked for its memory, its bound and its price in turn.
  struct Point;
  struct StageLayout;
  struct Solution {
    specs::Placement placement;
    double step_seconds = 0;
    double least_step_seconds = 0;
  };

  Point& point(const specs::RegularPlacement& outer) const;
  bool stages_lie_in_groups(const specs::RegularPlacement& outer) const;
  std::unique_ptr<StageLayout> stage_layout(const Point& point, const std::vector<std::size_t>& order,
                                            const GroupLimits& limits) const;
  bool any_fits(Point& point) const;
  bool may_reach(Point& point, double objective) const;
  bool any_fits(Point& point, const GroupLimits& limits) const;
  Partition solved(const Point& point, StageLayout& layout, double enough) const;
  std::optional<Partition> with_one_layer_recomputed(const StageLayout& layout,
                                                     const Partition& without) const;
  std::optional<Solution> solve(Point& point) const;
  /// Where nothing fits.
  Solution least_excess(const Point& point) const;
  specs::Placement placed(const Point& point, const StageLayout& layout, const Partition& partition) const;
  double stage_bound(const Point& point) const;
  Price price_of(const Solution& solution) const;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  const GroupLayouts layouts_;
  const InnerChoices inner_;
  const std::int64_t blocks_;
  const bool plain_points_;  ///< whether every point is in the space without recomputation, too
  GroupLimits limits_;
  std::vector<cost_models::UnitCounts> kinds_;  ///< all units of each kind; the embedding first
  mutable std::unique_ptr<Point> last_;
};

}  // namespace planner
