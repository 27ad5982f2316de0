// The experiment matrix: a plan for each point, in parallel, and which points nothing else beats.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan_experiment.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/read_experiment.h"

namespace planner {

/// A point that was planned, found infeasible or refused; nothing of these where the sweep was stopped first.
struct SweepOutcome {
  std::vector<std::string> settings;
  std::optional<PlanOutcome> outcome;
  specs::Diagnostics diagnostics;
};

/// How a sweep runs.
struct SweepRun {
  unsigned threads = 1;
  /// The plan of a point that was made before and is not made again.
  std::function<std::optional<specs::Plan>(std::size_t point)> made_before = [](std::size_t) {
    return std::nullopt;
  };
  /// Called once for each point that is planned now, never twice at the same time.
  std::function<void(std::size_t point, const SweepOutcome&)> finished = [](std::size_t,
                                                                            const SweepOutcome&) {};
};

/// Plans every point, the outcomes in the order of the points. Points that are not planned when `stop` turns
/// true are left out.
std::vector<SweepOutcome> run_sweep(const std::vector<specs::SweepPoint>& points, const SweepRun& run,
                                    const std::atomic<bool>& stop);

/// True where the plan answers the experiment, made by this program with these constants: planning it again
/// would give it again.
bool answers(const specs::Plan& plan, const specs::Experiment& experiment);

/// The point with the fewest devices whose whole run takes at most `seconds`, the faster of equals; none
/// where no planned point does.
std::optional<std::size_t> fewest_devices_within(const std::vector<SweepOutcome>& outcomes, double seconds);

/// The plan of an outcome; null where there is none.
const specs::Plan* plan_of(const SweepOutcome& outcome);

/// True for each planned point that no other planned point beats or equals in time a step, money a step and
/// device memory, with one of them better.
std::vector<bool> pareto_front(const std::vector<SweepOutcome>& outcomes);

}  // namespace planner
