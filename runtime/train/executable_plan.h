// From a plan to what the runtime executes: what it cannot execute is found here, before any rank starts.
#pragma once

#include "specs/diagnostics/diagnostic.h"
#include "specs/plan/plan.h"
#include "specs/schedule/schedule.h"

namespace runtime {

/// The plan's own schedule, lowered and verified. Requires a plan that `specs::read_plan` accepts. Errors,
/// all at once, at `file`: what is not implemented, or a lowered schedule that is wrong.
specs::Result<specs::Schedule> executable_schedule(const specs::Plan& plan, const std::string& file);

}  // namespace runtime
