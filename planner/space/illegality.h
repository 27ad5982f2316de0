// Why a space has no candidate: the rules that its restrictions break.
#pragma once

#include <string>
#include <vector>

#include "planner/space/space.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner {

/// For an empty space: "tensor = 5: 96 heads % tensor 5 = 1 (model shape)" for every degree that [search]
/// names and a rule refuses by itself; where none is, the first rule that the restrictions break together.
std::vector<std::string> reasons_for_empty_space(const specs::Experiment& experiment,
                                                 const specs::StackSpec& stack, const Space& space);

}  // namespace planner
