// Which values of the dimensions of a stack's space a plan has.
#pragma once

#include <set>
#include <string>

#include "specs/language/stack.h"
#include "specs/plan/plan.h"

namespace planner {

/// "dimension: value", of each dimension.
std::set<std::string> values_of(const specs::Plan& plan);

/// All that plans of experiments like those of RandomPlans can have under this stack.
std::set<std::string> values_of(const specs::StackSpec& stack);

}  // namespace planner
