#include "planner/what_if.h"

#include <utility>

namespace planner {

specs::Result<WhatIf> what_if(const specs::Experiment& base, const specs::Experiment& changed) {
  specs::Result<WhatIf> result;
  specs::Result<PlanOutcome> base_outcome = plan_experiment(base);
  specs::Result<PlanOutcome> changed_outcome = plan_experiment(changed);
  result.diagnostics = base_outcome.diagnostics;
  result.diagnostics.append(changed_outcome.diagnostics);
  if (!base_outcome || !changed_outcome) return result;

  WhatIf answer{std::move(*base_outcome), std::nullopt, {}, std::move(*changed_outcome)};
  if (answer.base.plan) {
    specs::Result<PricedPlan> priced = price_placement(changed, answer.base.plan->placement);
    for (const specs::Diagnostic& diagnostic : priced.diagnostics.entries())
      answer.unchanged_refusals.push_back(diagnostic.message);
    answer.unchanged = std::move(priced.value);
  }
  result.value = std::move(answer);
  return result;
}

}  // namespace planner
