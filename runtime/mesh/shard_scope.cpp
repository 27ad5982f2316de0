#include "runtime/mesh/shard_scope.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/mesh/rank_layout.h"
#include "specs/plan/rank_mapping.h"

namespace runtime {
namespace {

using Node = std::pair<std::int64_t, std::int64_t>;  ///< device group, node

bool needs_ranks(const specs::PipelineStage& stage) {
  return stage.zero.stage > 0 && stage.zero.scope == specs::ShardScope::node && stage.zero.shard_ranks == 0;
}

/// Lengths of the runs of neighbours on one node; nothing where a node comes back after another.
std::optional<std::set<std::int64_t>> runs_on_nodes(const std::vector<std::int64_t>& ranks,
                                                    const specs::RankMapping& mapping) {
  std::set<Node> left;
  std::set<std::int64_t> lengths;
  std::int64_t length = 0;
  std::optional<Node> here;
  for (const std::int64_t rank : ranks) {
    const auto device = specs::locate(mapping, rank);
    if (!device) return std::nullopt;
    const Node node{device->device_group, device->node};
    if (here && *here != node) {
      lengths.insert(length);
      left.insert(*here);
      length = 0;
    }
    if (left.contains(node)) return std::nullopt;
    here = node;
    ++length;
  }
  lengths.insert(length);
  return lengths;
}

}  // namespace

std::optional<std::int64_t> replicas_in_node(const specs::Placement& placement,
                                             const specs::RankMapping& mapping) {
  std::set<std::int64_t> lengths;
  for (const std::vector<std::int64_t>& group : groups_of(placement, MeshGroup::gradient)) {
    const auto runs = runs_on_nodes(group, mapping);
    if (!runs) return std::nullopt;
    lengths.insert(runs->begin(), runs->end());
  }
  if (lengths.size() != 1) return std::nullopt;
  return *lengths.begin();
}

specs::Placement with_shard_ranks(const specs::Placement& placement, const specs::RankMapping& mapping) {
  specs::Placement result = placement;
  if (std::none_of(placement.stages.begin(), placement.stages.end(), needs_ranks)) return result;
  const std::int64_t ranks = replicas_in_node(placement, mapping).value();
  for (specs::PipelineStage& stage : result.stages)
    if (needs_ranks(stage)) stage.zero.shard_ranks = ranks;
  return result;
}

}  // namespace runtime
