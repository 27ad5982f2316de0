// Does a plan agree with itself? Everything that its schema cannot say.
#pragma once

#include <string>
#include <vector>

#include "specs/plan/plan.h"

namespace specs {

/// A broken rule, at a JSON pointer of the plan's file.
struct PlanViolation {
  std::string pointer;
  std::string message;
  std::string remedy;
  /// Offset in the string at `pointer` where the place is inside it; −1: the whole value.
  std::int64_t offset = -1;
  bool operator==(const PlanViolation&) const = default;
};

/// The placement against model, cluster and recipe; world size and idle devices; the schedule's text against
/// its grammar, the verifier and the generator it names; the rank mapping; what the prediction speaks of; and
/// the inputs against their hash and against each other. Empty where the plan is whole.
std::vector<PlanViolation> plan_violations(const Plan& plan);

/// A hash of each section of the inputs: "model:1f0c… cluster:…".
std::string inputs_hash(const Experiment& inputs);

/// The schedule of a placement as a plan carries it, one entry for each distinct share.
PlanSchedule plan_schedule(const Placement& placement);

}  // namespace specs
