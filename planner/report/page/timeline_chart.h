// The simulated step as a picture: a row a pipeline rank, drawn and zoomed by the page's script.
#pragma once

#include <string>

#include "planner/simulate/placement_simulation.h"
#include "specs/plan/plan.h"

namespace planner {

/// The canvas with its controls, and the tasks as JSON: for each pipeline rank its compute tasks and its
/// gathers and reductions, each as a run of numbers: gap since the end of the one before and duration in
/// tenths of a microsecond, kind, stage, micro-batch (−1: none). The update ends the row of every rank.
std::string timeline_chart(const specs::Plan& plan, const StepSimulation& step);

}  // namespace planner
