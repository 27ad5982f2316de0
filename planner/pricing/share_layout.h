// The replicas of an outer point spread over two groups of nodes, each group's with a share of its own
// (group_layouts.h): the shares that make both groups end together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/space/group_layouts.h"
#include "specs/plan/placement.h"

namespace planner {

/// Memory that a rank may use, by group.
struct GroupLimits {
  std::vector<std::int64_t> device_bytes;
  std::vector<std::int64_t> host_bytes_per_node;
};

class ShareLayout {
 public:
  /// Keeps a reference to the estimator.
  ShareLayout(const cost_models::Estimator& estimator, const GroupLayouts& layouts,
              const specs::RegularPlacement& outer);

  bool exists() const { return shares_.count > 0; }
  std::int64_t count() const { return shares_.count; }

  /// Step time that no shares go below, whatever memory they need; no simulation.
  double bound();
  bool any_fits(const GroupLimits& limits);

  struct Best {
    double step_seconds = 0;
    std::int64_t index = 0;
  };
  /// Nothing where no shares fit.
  std::optional<Best> best(const GroupLimits& limits);

  specs::Placement placement(std::int64_t index) const;

 private:
  /// The replicas of one group: one micro-batch alone is priced otherwise than several.
  struct Replicas {
    cost_models::StagePricer pricer;
    std::vector<cost_models::StageSeconds> stages;
    std::vector<cost_models::StepEndSeconds> ends;
  };
  const Replicas& replicas(std::size_t group, std::int64_t share);
  double seconds(std::int64_t share, std::size_t group);
  double least_seconds(std::int64_t share, std::size_t group);
  const cost_models::StagePricer::Bytes& memory(std::int64_t share, std::size_t group);
  bool fits(std::int64_t index, const GroupLimits& limits);
  /// Where the bounds of both groups cross.
  std::int64_t least_bound_index();
  double bound_at(std::int64_t index);

  const cost_models::Estimator& estimator_;
  specs::RegularPlacement outer_;
  ReplicaShares shares_;
  std::array<std::array<std::optional<Replicas>, 2>, 2> replicas_;
  /// By group, by share; by group, by what of the share the memory depends on.
  std::map<std::pair<std::size_t, std::int64_t>, double> seconds_;
  std::map<std::tuple<std::size_t, bool, std::int64_t>, cost_models::StagePricer::Bytes> memory_;
  std::optional<std::int64_t> least_bound_index_;
};

}  // namespace planner
