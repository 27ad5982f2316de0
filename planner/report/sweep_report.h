// `dsplan compile`: one table of all points.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/questions/sweep.h"
#include "planner/report/report.h"

namespace planner {

/// What is said beside the outcomes.
struct SweepReportOptions {
  std::string name;
  std::vector<std::string> files;     ///< each point's plan, empty where there is none
  std::optional<double> within_days;  ///< how many devices train all tokens in this time?
};

Report sweep_report(const std::vector<SweepOutcome>& outcomes, const SweepReportOptions& options);

}  // namespace planner
