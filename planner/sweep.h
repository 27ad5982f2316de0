// The experiment matrix: a plan for each point, in parallel, and which points nothing else beats.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan_experiment.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/read_experiment.h"

namespace planner {

/// A point that was planned, found infeasible or refused; nothing of these where the sweep was stopped first.
struct SweepOutcome {
  std::vector<std::string> settings;
  std::optional<PlanOutcome> outcome;
  specs::Diagnostics diagnostics;
};

/// Plans every point on `threads` threads, the outcomes in the order of the points. `finished(index,
/// outcome)` is called once a point, never twice at the same time. Points that have not begun when `stop`
/// turns true are left out.
std::vector<SweepOutcome> run_sweep(const std::vector<specs::SweepPoint>& points, unsigned threads,
                                    const std::function<void(std::size_t, const SweepOutcome&)>& finished,
                                    const std::atomic<bool>& stop);

/// True for each planned point that no other planned point beats or equals in time a step, money a step and
/// device memory, with one of them better.
std::vector<bool> pareto_front(const std::vector<SweepOutcome>& outcomes);

}  // namespace planner
