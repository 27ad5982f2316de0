// What this runtime executes. The planner reads the same from specs/catalog/stacks/dsrun.toml; a test holds
// the two equal.
#pragma once

#include <string>
#include <vector>

#include "specs/language/stack.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"

namespace runtime {

const specs::StackSpec& capabilities();

/// What of the placement and the recipe is outside the capabilities, one sentence each, naming the feature
/// and what is executed instead.
std::vector<std::string> capability_refusals(const specs::Placement& placement,
                                             const specs::TrainingSpec& training);

}  // namespace runtime
