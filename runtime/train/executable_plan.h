// From a plan to what the runtime executes: everything that could be wrong with the plan is found here,
// before any rank starts.
#pragma once

#include "specs/diagnostics/diagnostic.h"
#include "specs/plan/plan.h"
#include "specs/schedule/schedule.h"

namespace runtime {

/// The plan's own schedule, lowered and verified. Errors, all at once, at `file`: an illegal placement, a
/// feature that is not implemented, a schedule that does not parse, does not fit the placement or is wrong.
specs::Result<specs::Schedule> executable_schedule(const specs::Plan& plan, const std::string& file);

}  // namespace runtime
