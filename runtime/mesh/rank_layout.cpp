#include "runtime/mesh/rank_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "specs/plan/rank_mapping.h"

namespace runtime {
namespace {

const specs::PipelineStage& stage_on(const specs::Placement& placement, std::int64_t pipeline_rank) {
  for (const specs::PipelineStage& stage : placement.stages)
    if (stage.pipeline_rank == pipeline_rank) return stage;
  throw std::logic_error("no stage on pipeline rank " + std::to_string(pipeline_rank));
}

/// The coordinates that all members of a group have in common.
using GroupKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

GroupKey key_of(const specs::Placement& placement, const MeshCoordinates& at, MeshGroup kind) {
  constexpr std::int64_t any = -1;
  const specs::PipelineStage& stage = stage_on(placement, at.pipeline);
  const std::int64_t in_gradient_group = at.data * stage.mesh.context + at.context;
  switch (kind) {
    case MeshGroup::world:
      return {any, any, any, any};
    case MeshGroup::tensor:
      return {at.pipeline, at.data, at.context, any};
    case MeshGroup::context:
      return {at.pipeline, at.data, any, at.tensor};
    case MeshGroup::data:
      return {at.pipeline, any, at.context, at.tensor};
    case MeshGroup::gradient:
      return {at.pipeline, any, any, at.tensor};
    case MeshGroup::shard:
      return {at.pipeline, in_gradient_group / shard_ranks_of(stage), any, at.tensor};
    case MeshGroup::replica:
      return {at.pipeline, in_gradient_group % shard_ranks_of(stage), any, at.tensor};
    case MeshGroup::pipeline:
    case MeshGroup::embedding:
      return {any, at.data, at.context, at.tensor};
    case MeshGroup::model:
      return {any, at.data, at.context, any};
    case MeshGroup::stage:
      return {at.pipeline, any, any, any};
  }
  return {};
}

/// Members in group order: by pipeline rank, then data, context, tensor.
auto order_of(const MeshCoordinates& at) { return std::tuple(at.pipeline, at.data, at.context, at.tensor); }

}  // namespace

std::int64_t shard_ranks_of(const specs::PipelineStage& stage) {
  return stage.zero.shard_ranks > 0 ? stage.zero.shard_ranks : stage.mesh.data * stage.mesh.context;
}

std::vector<std::int64_t> stages_of(const specs::Placement& placement, std::int64_t pipeline_rank) {
  std::vector<std::int64_t> stages;
  for (std::size_t stage = 0; stage < placement.stages.size(); ++stage)
    if (placement.stages[stage].pipeline_rank == pipeline_rank)
      stages.push_back(static_cast<std::int64_t>(stage));
  return stages;
}

MeshCoordinates coordinates_of(const specs::Placement& placement, std::int64_t rank) {
  const std::optional<std::int64_t> pipeline = specs::pipeline_rank_of(placement, rank);
  if (!pipeline) throw std::logic_error("rank " + std::to_string(rank) + " is on no stage");
  const specs::PipelineStage& stage = stage_on(placement, *pipeline);
  const specs::RankCoordinates at =
      specs::coordinates_of(stage.mesh, specs::index_in(stage.devices, rank).value());
  return {.pipeline = *pipeline, .data = at.data, .context = at.context, .tensor = at.tensor};
}

std::int64_t rank_at(const specs::Placement& placement, const MeshCoordinates& at) {
  const specs::PipelineStage& stage = stage_on(placement, at.pipeline);
  return stage.devices.rank(
      specs::index_of(stage.mesh, {.tensor = at.tensor, .context = at.context, .data = at.data}));
}

std::vector<std::vector<std::int64_t>> groups_of(const specs::Placement& placement, MeshGroup kind) {
  const auto holders = [&](std::int64_t stage) {
    return placement.stages[static_cast<std::size_t>(stage)].pipeline_rank;
  };
  const std::int64_t first = holders(0);
  const std::int64_t last = holders(static_cast<std::int64_t>(placement.stages.size()) - 1);

  std::map<GroupKey, std::vector<std::pair<MeshCoordinates, std::int64_t>>> members;
  const std::int64_t world = placement.world_size();
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const MeshCoordinates at = coordinates_of(placement, rank);
    if (kind == MeshGroup::embedding && at.pipeline != first && at.pipeline != last) continue;
    members[key_of(placement, at, kind)].emplace_back(at, rank);
  }

  std::vector<std::vector<std::int64_t>> groups;
  for (auto& [key, group] : members) {
    std::sort(group.begin(), group.end(),
              [](const auto& a, const auto& b) { return order_of(a.first) < order_of(b.first); });
    std::vector<std::int64_t>& ranks = groups.emplace_back();
    for (const auto& member : group) ranks.push_back(member.second);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace runtime
