// Where no legal mesh uses all devices of a cluster of several kinds of nodes: the largest part that one
// does.
#pragma once

#include <optional>
#include <string>

#include "specs/language/experiment.h"
#include "specs/language/stack.h"

namespace planner {

struct ClusterPart {
  specs::Experiment experiment;  ///< on the nodes in use
  std::string idle;              ///< "1 of 32 dgx-h100"
};

/// The part with the most devices, among equals that with the most nodes of the first group; at least one
/// node of each group. Nothing where the cluster is of one kind, or no part of those that are tried is legal
/// (4,096, the largest first).
std::optional<ClusterPart> largest_legal_part(const specs::Experiment& experiment,
                                              const specs::StackSpec& stack);

}  // namespace planner
