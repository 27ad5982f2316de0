// Why a plan is not another placement: the constraint that excludes the other, or what it costs more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace planner {

enum class Verdict : std::uint8_t {
  illegal,             ///< a rule of shape, batch, schedule or software stack excludes it
  does_not_fit,        ///< memory excludes it
  excluded_by_search,  ///< legal and it fits, but the plan's own [search] leaves it out
  worse,
  equal,   ///< as good; the plan keeps less on hosts, needs less memory or comes first
  chosen,  ///< it is the plan
};

struct WhyNot {
  Verdict verdict = Verdict::illegal;
  std::vector<std::string> reasons;           ///< failing equations
  std::optional<specs::Placement> placement;  ///< the best that meets the question, unless illegal
  std::optional<specs::CostBreakdown> cost;
};

/// Settings ("search.tensor=[9999]") that no placement of the plan's model and cluster could ever have:
/// degrees below 1 or above the devices, more experts, layers or sequences than there are. Each error names
/// the legal values.
specs::Diagnostics impossible_values(const specs::Plan& plan, const std::vector<std::string>& settings);

/// `free` is the plan's experiment with [search] replaced by what was asked, `kept` the same with what was
/// asked on top of the plan's [search]. Dimensions that a question leaves free are chosen at their best:
/// within the plan's [search] where it has a placement that fits, else outside.
specs::Result<WhyNot> why_not(const specs::Plan& plan, const std::optional<specs::Experiment>& kept,
                              const specs::Experiment& free);

}  // namespace planner
