// Why a space has no candidate: the restrictions that leave none, and the rules that their values break.
#pragma once

#include <string>
#include <vector>

#include "planner/space/space.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner {

struct EmptySpace {
  /// Sets of keys of [search] ("virtual_stages"): without those of any one set, something is legal, and no
  /// smaller set does that. Empty where nothing is legal without [search] either.
  std::vector<std::vector<std::string>> restricting;
  /// "search.tensor = [5] leaves no placement: 96 heads % tensor 5 = 1 (model shape)", one for each set;
  /// where there is none, the first rule that one candidate breaks.
  std::vector<std::string> reasons;
};

/// For an empty space.
EmptySpace why_empty(const specs::Experiment& experiment, const specs::StackSpec& stack);

}  // namespace planner
