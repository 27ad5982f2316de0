// The price of a placement that the user names, whether it fits or not.
#pragma once

#include <cstdint>
#include <string>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

struct PricedPlan {
  specs::Plan plan;  ///< without a certificate
  std::int64_t usable_device_bytes = 0;
  std::string memory_shortfall;  ///< the failing equation; empty where it fits
};

/// Errors: the placement is illegal for the experiment.
specs::Result<PricedPlan> price_placement(const specs::Experiment& experiment,
                                          const specs::Placement& placement);

/// Of the placements that [search] leaves: the best that fits, or the one that lacks the least
/// memory where none does. Errors:
/// none is legal.
specs::Result<PricedPlan> price_best_completion(const specs::Experiment& experiment);

}  // namespace planner
