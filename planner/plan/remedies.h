// When nothing fits: the changes to the experiment that make something fit, each tried, not guessed.
#pragma once

#include <string>
#include <vector>

#include "planner/search/search_result.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner {

struct Remedy {
  std::string change;         ///< "16 nodes instead of 8"
  std::string setting;        ///< as `--set` takes it, "cluster.nodes=16"
  PricedCandidate candidate;  ///< the best placement after the change
};

/// Tried one at a time: more nodes (the fewest that fit, up to 64 times as many), each restriction of
/// [search] lifted, nodes of the catalog whose devices have more memory, other software stacks.
std::vector<Remedy> remedies_for(const specs::Experiment& experiment);

}  // namespace planner
