// `dsplan compile`: one table of all points.
#pragma once

#include <string>
#include <vector>

#include "planner/report/report.h"
#include "planner/sweep.h"

namespace planner {

/// `files` names each point's plan, empty where there is none.
Report sweep_report(const std::string& name, const std::vector<SweepOutcome>& outcomes,
                    const std::vector<std::string>& files);

}  // namespace planner
