// The simulation of a placement's step: its lowered schedule with the cost models' durations.
//
// Collapsed by symmetry: the ranks of a pipeline rank's tensor, context and data axes do the same at the same
// time, so that one stands for all of them and a plan for any number of devices has as many tasks as its
// pipeline has actions. Where replicas have unequal shares of the batch, the one that takes longest is
// simulated: the others wait for it.
#pragma once

#include <cstddef>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/simulate/simulate.h"
#include "specs/plan/placement.h"

namespace planner {

struct StepSimulation {
  specs::Schedule schedule;   ///< lowered
  Simulation pipeline;        ///< to the last gradient reduction
  double update_seconds = 0;  ///< what follows on all ranks: parameters gathered and updated, and fixed costs
  /// By pipeline rank: of that, what a rank with less to update waits for the longest; empty: none does.
  std::vector<double> waits_for_update_seconds;
  double seconds() const { return pipeline.seconds + update_seconds; }
  /// What the rank itself does of it.
  double update_of(std::size_t rank) const {
    return waits_for_update_seconds.empty() ? update_seconds
                                            : update_seconds - waits_for_update_seconds[rank];
  }
};

/// Requires a placement that `specs::check_placement` accepts.
StepSimulation simulate_step(const cost_models::Estimator& estimator, const specs::Placement& placement);

/// The durations of the actions of a lowered schedule. Collectives within a stage stand in its compute
/// actions as far as nothing hides them, gathers and reductions of each micro-batch (ZeRO-2 and 3) among
/// them. A rank's exposed reduction stands with the stage whose gradients it completes last.
ScheduleDurations schedule_durations(const cost_models::PlacementSeconds& seconds,
                                     const specs::Schedule& schedule);

}  // namespace planner
