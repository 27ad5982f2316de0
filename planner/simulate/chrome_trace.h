// A simulation in the Trace Event Format that Chrome's tracing and Perfetto open: a process for each pipeline
// rank; in it a thread for its compute, its gathers, its reductions and each of its outgoing links; a slice
// for each task; and for each transfer a flow from the action that made the tensor, over the transfer, to the
// action that waits for it. What ends the step on all ranks is a slice of each.
#pragma once

#include <string>
#include <vector>

#include "planner/simulate/placement_simulation.h"

namespace planner {

struct TraceNames {
  std::string title;                    ///< of the whole trace
  std::vector<std::string> rank_names;  ///< one a pipeline rank: "pipeline rank 3: layers 9–11"
};

/// The JSON text. Times are microseconds; tasks that take no time have no slice.
std::string chrome_trace(const StepSimulation& step, const TraceNames& names);

}  // namespace planner
