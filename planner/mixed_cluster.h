// Plans for clusters of unlike nodes ([[cluster.group]]), all of them in use.
//
// The meshes, micro-batches, schedules and treatments are those of the space (space.h) for as many devices,
// in the default order of the axes; parts are offloaded whole unless [search] offload_eighths says otherwise.
// A point is laid over the groups in one of two ways:
//
//   unequal stages   Each pipeline rank lies in one group, the ranks of a group stand together, in any order
//                    of the groups. Stages are cut for the speed and the memory of their devices
//                    (stage_partition.h). Where cuts are free; one stage a rank.
//   unequal shares   Each data-parallel replica lies in one of two groups, and the replicas of a group run as
//                    many micro-batches as make both end together. Stages are cut evenly, since the replicas
//                    share the cut.
//
// Points are looked at mesh by mesh; one whose bound is no better than the best known is not solved. The
// bound: all ranks together do m micro-batches' work, so that no step is shorter than m / Σ 1 / W_r over the
// ranks r of a replica (over all replicas, for shares), W_r being the model's work for one micro-batch at the
// rank's speed, nothing recomputed or offloaded. Cuts come with bounds of their own, which make the gap.
#pragma once

#include <atomic>
#include <optional>

#include "cost_models/estimate.h"
#include "planner/count.h"
#include "planner/space.h"
#include "specs/plan/plan.h"

namespace planner {

inline constexpr std::string_view mixed_cluster_method = "mixed-cluster";

struct MixedResult {
  std::optional<specs::Placement> best;
  double step_seconds = 0;
  specs::Certificate certificate;
};

/// Step time is minimised: cost and energy are it times a rate, since every device is in use.
MixedResult plan_mixed_cluster(const specs::Experiment& experiment, const specs::StackSpec& stack,
                               const Space& space, const cost_models::Estimator& estimator,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace planner
