// Two prices, placements or plans beside each other.
#pragma once

#include <string>

#include "planner/questions/why_not.h"
#include "planner/report/report.h"
#include "specs/plan/plan.h"

namespace planner {

/// What is being compared, as column titles.
struct ComparisonNames {
  std::string from = "A";
  std::string to = "B";
};

/// Step time, throughput, memory, money and energy of both and the change.
Table headline_comparison(const specs::CostBreakdown& from, const specs::CostBreakdown& to,
                          const ComparisonNames& names);

/// Terms that differ, the largest change first, with the step as total.
Table time_comparison(const specs::CostBreakdown& from, const specs::CostBreakdown& to,
                      const ComparisonNames& names);

/// Classes that differ on the fullest pipeline rank of each.
Table memory_comparison(const specs::CostBreakdown& from, const specs::CostBreakdown& to,
                        const ComparisonNames& names);

/// Layout, schedule and treatments that differ.
Table placement_comparison(const specs::Placement& from, const specs::Placement& to,
                           const ComparisonNames& names);

/// `dsplan diff`: inputs, placement and prediction. Says so where nothing differs.
Report diff_report(const specs::Plan& from, const specs::Plan& to, const ComparisonNames& names);

/// `dsplan why-not`: the verdict, and the comparison with the plan where there is something to compare.
Report why_not_report(const specs::Plan& plan, const WhyNot& answer, const std::string& question);

}  // namespace planner
