// Advice attached to a plan: what an experienced engineer would say on seeing it, each with its reason.
#pragma once

#include <string>
#include <vector>

#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

/// The rules that apply to the plan's inputs and placement, in a fixed order.
std::vector<specs::Advice> advice_on(const specs::Experiment& experiment, const specs::Placement& placement);

}  // namespace planner
