// `dsplan explain`: where each second and byte goes, what binds, and what would help most.
#pragma once

#include <vector>

#include "planner/questions/sensitivity.h"
#include "planner/report/report.h"
#include "specs/plan/plan.h"

namespace planner {

Report explain_report(const specs::Plan& plan, const std::vector<SensitivityEntry>& sensitivity,
                      std::int64_t usable_device_bytes);

}  // namespace planner
