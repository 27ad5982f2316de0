// A lowered schedule as a graph of timed tasks (Boost.Graph): what must end before what may start.
//
// Each pipeline rank has a stream for its compute actions, one for its gathers and one for its reductions,
// each in the order of the list. A transfer occupies the directed link between two ranks, one after the other
// in the order of the sends; sender and receiver go on computing meanwhile, and only the action that uses the
// tensor waits for it.
#pragma once

#include <cstdint>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "specs/schedule/schedule.h"

namespace planner {

/// Seconds of one micro-batch on one stage.
struct StageDurations {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;  ///< a whole backward takes this and the input gradient
  double gather = 0;           ///< of the stage's parameters, each time (ZeRO-3)
  double reduction = 0;        ///< of the stage's gradients, each time they are reduced
};

struct ScheduleDurations {
  std::vector<StageDurations> stages;
  std::vector<double> activation_transfer;  ///< from stage i to i + 1, one micro-batch; one entry less
  std::vector<double> gradient_transfer;    ///< from stage i + 1 to i
  double tied_reduction = 0;
};

struct Task {
  specs::Action action;       ///< of a transfer, its send or reshard
  std::int32_t rank = 0;      ///< of a transfer, the sender
  std::int32_t to_rank = -1;  ///< of a transfer, the receiver; else −1
  double seconds = 0;
};

/// An edge leads from a task to one that starts no earlier than its end.
using TaskGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Task>;

/// Requires a lowered schedule that `specs::verify` accepts, and an entry for each of its stages and
/// boundaries.
TaskGraph task_graph(const specs::Schedule& lowered, const ScheduleDurations& seconds);

}  // namespace planner
