// How many of the ranks that hold the same parameters lie in one node: the size of a shard group whose scope
// is the node.
#pragma once

#include <cstdint>
#include <optional>

#include "specs/plan/placement.h"
#include "specs/plan/plan.h"

namespace runtime {

/// Nothing where nodes hold unequal numbers of them, or the ranks of a node are not neighbours in the group.
std::optional<std::int64_t> replicas_in_node(const specs::Placement& placement,
                                             const specs::RankMapping& mapping);

/// The placement with the number of ranks written into every stage whose shard scope is the node. Requires
/// that there is such a number.
specs::Placement with_shard_ranks(const specs::Placement& placement, const specs::RankMapping& mapping);

}  // namespace runtime
