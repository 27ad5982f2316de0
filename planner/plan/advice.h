// Advice attached to a plan: what an experienced engineer would say on seeing it, each with its reason.
#pragma once

#include <vector>

#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

/// The rules that apply to a placement of the experiment and its price, in a fixed order.
std::vector<specs::Advice> advice_on(const specs::Experiment& experiment, const specs::Placement& placement,
                                     const specs::CostBreakdown& cost);

}  // namespace planner
