#include "planner/simulate/rank_usage.h"

#include <algorithm>

namespace planner {

bool is_compute(specs::ActionKind kind) {
  using specs::ActionKind;
  return kind == ActionKind::forward || kind == ActionKind::backward || kind == ActionKind::input_gradient ||
         kind == ActionKind::weight_gradient;
}

std::vector<RankUsage> rank_usage(const StepSimulation& step) {
  std::vector<RankUsage> usage(static_cast<std::size_t>(step.schedule.pipeline_ranks));
  double last_compute_end = 0;
  for (const TimedTask& timed : step.pipeline.tasks) {
    if (!is_compute(timed.task.action.kind)) continue;
    usage[static_cast<std::size_t>(timed.task.rank)].busy_seconds += timed.task.seconds;
    last_compute_end = std::max(last_compute_end, timed.end_seconds);
  }
  for (std::size_t rank = 0; rank < usage.size(); ++rank) {
    RankUsage& entry = usage[rank];
    entry.rank = static_cast<std::int32_t>(rank);
    entry.waiting_seconds = last_compute_end - entry.busy_seconds;
    entry.busy_seconds += step.update_of(rank);
    entry.idle_seconds = step.seconds() - entry.busy_seconds;
  }
  return usage;
}

}  // namespace planner
