// Reports of answers that are not a plan: nothing fits, the space itself, the price of one placement.
#pragma once

#include "planner/plan/plan_experiment.h"
#include "planner/report/report.h"
#include "planner/space/space.h"
#include "specs/language/key_places.h"
#include "specs/plan/plan.h"

namespace planner {

/// Why nothing can be planned, and what was tried that makes a plan possible.
/// `places` tells where the restrictions stand that leave nothing.
Report infeasibility_report(const specs::Experiment& experiment, const Infeasibility& infeasibility,
                            const specs::KeyPlaces& places = {});

/// `--show-space`: the dimensions with their values, what is excluded and by which rule, and the exact count.
Report space_report(const Space& space);

/// `dsplan estimate`: the price of a plan's placement, without the search's account.
Report estimate_report(const specs::Plan& plan, std::int64_t usable_device_bytes,
                       const std::string& memory_verdict);

}  // namespace planner
