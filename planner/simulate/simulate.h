// Discrete-event simulation of a schedule: when every action runs, how long the step takes, and what that is
// due to.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "planner/simulate/task_graph.h"

namespace planner {

struct TimedTask {
  Task task;
  double start_seconds = 0;
  double end_seconds = 0;
};

struct Simulation {
  double seconds = 0;            ///< from the first start to the last end
  std::vector<TimedTask> tasks;  ///< rank by rank, in the order of their lists
  /// Indices of tasks, each starting when the one before it ends, from time 0 to `seconds`.
  std::vector<std::size_t> critical_path;
};

/// "forward", "gradient transfer": both ends of a transfer have one name.
std::string_view action_words(specs::ActionKind kind);

/// Every task as early as the graph allows. Requires what `task_graph` requires.
Simulation simulate(const specs::Schedule& lowered, const ScheduleDurations& seconds);

/// A part of the critical path: all of its actions of one kind on one pipeline rank.
struct CriticalShare {
  specs::ActionKind kind = specs::ActionKind::forward;
  std::int32_t rank = 0;
  double seconds = 0;
};

/// What the step time is made of, the largest part first; adds up to `seconds`.
std::vector<CriticalShare> critical_shares(const Simulation& simulation);

/// One line for each share: "1.250 s  50.0 %  backward on pipeline rank 3".
std::string explain(const Simulation& simulation);

}  // namespace planner
