// From a placement to a plan: everything that plan.json holds beside the search's own account.
#pragma once

#include "cost_models/estimate.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

/// Schedule text, communication environment, rank mapping, prediction and advice for a placement of
/// the experiment. The certificate is empty, the runners-up are none.
specs::Plan assemble_plan(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                          const specs::Placement& placement);

/// An error where a number of the plan is not finite: a rate of the cluster is too small or too large to
/// compute with.
specs::Diagnostics check_finite(const specs::Plan& plan);

}  // namespace planner
