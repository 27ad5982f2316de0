// An experiment beside a changed one: the base plan, its placement under the change, and the change planned
// anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan_experiment.h"
#include "planner/plan/price_placement.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

struct WhatIf {
  PlanOutcome base;
  /// The base's placement under the change, where it is legal there; with the dimensions that the change
  /// restricts in [search] (ZeRO, offload, recomputation …) as it asks.
  std::optional<PricedPlan> unchanged;
  std::vector<std::string> unchanged_refusals;  ///< why it is not
  PlanOutcome replanned;
};

/// Errors of either experiment. Without a base plan there is nothing to price unchanged.
specs::Result<WhatIf> what_if(const specs::Experiment& base, const specs::Experiment& changed);

}  // namespace planner
