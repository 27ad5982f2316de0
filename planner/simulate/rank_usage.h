// How a simulated step divides on each pipeline rank: computing, waiting inside the pipeline, waiting at its
// ends.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/simulate/placement_simulation.h"

namespace planner {

struct RankUsage {
  std::int32_t rank = 0;
  double busy_seconds = 0;  ///< of the compute stream, the rank's update at the end of the step included
  double idle_seconds = 0;  ///< the rest of the step
  /// Of the idle time, what lies before the last compute action of any rank: bubble and transfers.
  double waiting_seconds = 0;
};

/// One entry a pipeline rank.
std::vector<RankUsage> rank_usage(const StepSimulation& step);

/// Forward, backward and the two halves of a backward.
bool is_compute(specs::ActionKind kind);

}  // namespace planner
