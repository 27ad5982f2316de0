// `dsplan simulate`: how long the simulated step takes against the prediction, what each pipeline rank does
// in it, and what its length is due to.
#pragma once

#include "planner/report/report.h"
#include "planner/simulate/placement_simulation.h"
#include "specs/plan/plan.h"

namespace planner {

/// `step` is of the plan's placement.
Report simulation_report(const specs::Plan& plan, const StepSimulation& step);

/// Busy, idle and bubble of every pipeline rank.
Table rank_usage_table(const specs::Plan& plan, const StepSimulation& step);

}  // namespace planner
