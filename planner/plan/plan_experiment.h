// From an experiment to its best plan, or to the reasons why there is none and what would help.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/remedies.h"
#include "planner/search/search_result.h"
#include "planner/space/count.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

/// Why nothing can be planned.
struct Infeasibility {
  std::vector<std::string> reasons;        ///< failing equations, of the shape or of memory
  std::optional<PricedCandidate> nearest;  ///< the candidate that lacks the least memory
  Count candidates;                        ///< of the space, none of which fits
  std::vector<Remedy> remedies;
};

/// One of the two.
struct PlanOutcome {
  std::optional<specs::Plan> plan;
  std::optional<Infeasibility> infeasibility;
};

enum class SearchMethod : std::uint8_t { branch_and_bound, exhaustive };

/// Searches the whole space. Errors: an unknown stack, and what the search does not vary (restrictions of
/// dimensions that have one value alone). Stops early, with an incomplete
/// certificate, once `*stop` is true; neither plan nor infeasibility where nothing was found until then.
specs::Result<PlanOutcome> plan_experiment(const specs::Experiment& experiment,
                                           const std::atomic<bool>* stop = nullptr,
                                           SearchMethod method = SearchMethod::branch_and_bound);

/// The errors that `plan_experiment` would give before it searches.
specs::Diagnostics unplannable(const specs::Experiment& experiment);

}  // namespace planner
