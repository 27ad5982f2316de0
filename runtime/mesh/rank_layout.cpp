#include "runtime/mesh/rank_layout.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace runtime {
namespace {

const specs::PipelineStage& stage_on(const specs::Placement& placement, std::int64_t pipeline_rank) {
  for (const specs::PipelineStage& stage : placement.stages)
    if (stage.pipeline_rank == pipeline_rank) return stage;
  throw std::logic_error("no stage on pipeline rank " + std::to_string(pipeline_rank));
}

std::int64_t degree(const specs::StageMesh& mesh, specs::MeshAxis axis) {
  switch (axis) {
    case specs::MeshAxis::tensor:
      return mesh.tensor;
    case specs::MeshAxis::context:
      return mesh.context;
    case specs::MeshAxis::data:
      return mesh.data;
    case specs::MeshAxis::expert:    // carved out of data × context
    case specs::MeshAxis::pipeline:  // the device set has it
      return 1;
  }
  return 1;
}

std::int64_t& coordinate(MeshCoordinates& coordinates, specs::MeshAxis axis) {
  switch (axis) {
    case specs::MeshAxis::tensor:
      return coordinates.tensor;
    case specs::MeshAxis::context:
      return coordinates.context;
    case specs::MeshAxis::data:
      return coordinates.data;
    default:
      return coordinates.pipeline;
  }
}

/// The coordinates that all members of a group have in common.
using GroupKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

GroupKey key_of(const MeshCoordinates& at, MeshGroup kind) {
  constexpr std::int64_t any = -1;
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

std::vector<std::int64_t> stages_of(const specs::Placement& placement, std::int64_t pipeline_rank) {
  std::vector<std::int64_t> stages;
  for (std::size_t stage = 0; stage < placement.stages.size(); ++stage)
    if (placement.stages[stage].pipeline_rank == pipeline_rank)
      stages.push_back(static_cast<std::int64_t>(stage));
  return stages;
}

MeshCoordinates coordinates_of(const specs::Placement& placement, std::int64_t rank) {
  for (std::int64_t pipeline = 0; pipeline < placement.pipeline_ranks(); ++pipeline) {
    const specs::PipelineStage& stage = stage_on(placement, pipeline);
    for (std::int64_t index = 0; index < stage.devices.size(); ++index) {
      if (stage.devices.rank(index) != rank) continue;
      MeshCoordinates coordinates;
      std::int64_t rest = index;
      for (const specs::MeshAxis axis : stage.mesh.order) {
        const std::int64_t size = degree(stage.mesh, axis);
        if (size > 1) coordinate(coordinates, axis) = rest % size;
        rest /= size;
      }
      coordinates.pipeline = pipeline;
      return coordinates;
    }
  }
  throw std::logic_error("rank " + std::to_string(rank) + " is on no stage");
}

std::int64_t rank_at(const specs::Placement& placement, const MeshCoordinates& coordinates) {
  const specs::PipelineStage& stage = stage_on(placement, coordinates.pipeline);
  MeshCoordinates at = coordinates;
  std::int64_t index = 0;
  std::int64_t stride = 1;
  for (const specs::MeshAxis axis : stage.mesh.order) {
    const std::int64_t size = degree(stage.mesh, axis);
    if (size > 1) index += coordinate(at, axis) * stride;
    stride *= size;
  }
  return stage.devices.rank(index);
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
    members[key_of(at, kind)].emplace_back(at, rank);
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
