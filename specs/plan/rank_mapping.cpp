#include "specs/plan/rank_mapping.h"

#include <algorithm>

namespace specs {
namespace {

/// Degree and coordinate of an axis on one of the two grids; axes that the grid does not have count 1.
struct Digit {
  std::int64_t degree = 1;
  std::int64_t RankCoordinates::*coordinate = nullptr;
};

Digit dense_digit(const StageMesh& mesh, MeshAxis axis) {
  switch (axis) {
    case MeshAxis::tensor:
      return {mesh.tensor, &RankCoordinates::tensor};
    case MeshAxis::context:
      return {mesh.context, &RankCoordinates::context};
    case MeshAxis::data:
      return {mesh.data, &RankCoordinates::data};
    default:
      return {};
  }
}

Digit expert_digit(const StageMesh& mesh, MeshAxis axis) {
  switch (axis) {
    case MeshAxis::tensor:
      return {mesh.expert_tensor, &RankCoordinates::expert_tensor};
    case MeshAxis::expert:
      return {mesh.expert, &RankCoordinates::expert};
    case MeshAxis::data:
      return {mesh.expert_data(), &RankCoordinates::expert_data};
    default:
      return {};
  }
}

template <class DigitOf>
void split(const StageMesh& mesh, std::int64_t index, DigitOf digit_of, RankCoordinates& coordinates) {
  for (MeshAxis axis : mesh.order) {
    const Digit digit = digit_of(mesh, axis);
    if (digit.coordinate != nullptr) coordinates.*digit.coordinate = index % digit.degree;
    index /= digit.degree;
  }
}

template <class DigitOf>
std::int64_t join(const StageMesh& mesh, const RankCoordinates& coordinates, DigitOf digit_of) {
  std::int64_t index = 0;
  std::int64_t weight = 1;
  for (MeshAxis axis : mesh.order) {
    const Digit digit = digit_of(mesh, axis);
    if (digit.coordinate != nullptr) index += weight * (coordinates.*digit.coordinate);
    weight *= digit.degree;
  }
  return index;
}

}  // namespace

RankCoordinates coordinates_of(const StageMesh& mesh, std::int64_t index) {
  RankCoordinates coordinates;
  split(mesh, index, dense_digit, coordinates);
  split(mesh, index, expert_digit, coordinates);
  return coordinates;
}

std::int64_t index_of(const StageMesh& mesh, const RankCoordinates& coordinates) {
  return join(mesh, coordinates, dense_digit);
}

std::optional<std::int64_t> index_in(const DeviceSet& devices, std::int64_t rank) {
  const std::int64_t offset = rank - devices.first;
  if (offset < 0) return std::nullopt;
  const std::int64_t run = devices.stride == 0 ? 0 : offset / devices.stride;
  const std::int64_t within = offset - run * devices.stride;
  if (run >= devices.blocks || within >= devices.block) return std::nullopt;
  return run * devices.block + within;
}

std::optional<std::int64_t> pipeline_rank_of(const Placement& placement, std::int64_t rank) {
  for (const PipelineStage& stage : placement.stages)
    if (index_in(stage.devices, rank)) return stage.pipeline_rank;
  return std::nullopt;
}

std::vector<std::int64_t> axis_group(const PipelineStage& stage, MeshAxis axis, std::int64_t rank) {
  const std::optional<std::int64_t> index = index_in(stage.devices, rank);
  if (!index || axis == MeshAxis::pipeline) return {};
  const auto digit_of = axis == MeshAxis::expert ? expert_digit : dense_digit;
  const Digit digit = digit_of(stage.mesh, axis);
  RankCoordinates coordinates = coordinates_of(stage.mesh, *index);
  std::vector<std::int64_t> group;
  for (std::int64_t position = 0; position < digit.degree; ++position) {
    coordinates.*digit.coordinate = position;
    group.push_back(stage.devices.rank(join(stage.mesh, coordinates, digit_of)));
  }
  return group;
}

std::vector<std::int64_t> pipeline_group(const Placement& placement, std::int64_t rank) {
  std::vector<std::int64_t> group(static_cast<std::size_t>(placement.pipeline_ranks()), -1);
  std::optional<std::int64_t> index;
  for (const PipelineStage& stage : placement.stages)
    if (!index) index = index_in(stage.devices, rank);
  if (!index) return {};
  for (const PipelineStage& stage : placement.stages) {
    if (stage.devices.size() != placement.stages.front().devices.size()) return {};
    group.at(static_cast<std::size_t>(stage.pipeline_rank)) = stage.devices.rank(*index);
  }
  return group;
}

std::optional<DeviceLocation> locate(const RankMapping& mapping, std::int64_t rank) {
  for (const RankException& exception : mapping.exceptions)
    if (exception.rank == rank) return DeviceLocation{exception.node, exception.device};
  for (const HostRange& range : mapping.ranges) {
    const std::int64_t offset = rank - range.first_rank;
    if (offset < 0 || offset >= range.ranks) continue;
    return DeviceLocation{range.first_node + offset / range.ranks_per_node, offset % range.ranks_per_node};
  }
  return std::nullopt;
}

namespace {

/// Deals out the devices of one group in order.
struct GroupCursor {
  std::int64_t first_node = 0;
  std::int64_t devices_per_node = 1;
  std::int64_t used = 0;

  DeviceLocation location() const { return {first_node + used / devices_per_node, used % devices_per_node}; }
};

/// Ranks [first, end) on the next devices of a group: ranges where they start at a node's first device, one
/// by one until then.
void place_run(std::int64_t first, std::int64_t end, std::int64_t group, GroupCursor& cursor,
               RankMapping& mapping) {
  while (first < end && cursor.location().device != 0) {
    const DeviceLocation location = cursor.location();
    mapping.exceptions.push_back({.rank = first, .node = location.node, .device = location.device});
    ++first;
    ++cursor.used;
  }
  if (first == end) return;
  mapping.ranges.push_back({.first_rank = first,
                            .ranks = end - first,
                            .device_group = group,
                            .first_node = cursor.location().node,
                            .ranks_per_node = cursor.devices_per_node});
  cursor.used += end - first;
}

}  // namespace

RankMapping consecutive_mapping(const Placement& placement, const ClusterSpec& cluster) {
  std::vector<GroupCursor> cursors;
  std::int64_t nodes = 0;
  for (const ClusterGroup& group : cluster.groups) {
    cursors.push_back({.first_node = nodes, .devices_per_node = group.node.devices});
    nodes += group.nodes;
  }
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(placement.world_size()), 0);
  for (const PipelineStage& stage : placement.stages)
    for (std::int64_t index = 0; index < stage.devices.size(); ++index)
      group_of_rank.at(static_cast<std::size_t>(stage.devices.rank(index))) = stage.device_group;
  RankMapping mapping;
  for (auto run = group_of_rank.begin(); run != group_of_rank.end();) {
    const auto end =
        std::find_if(run, group_of_rank.end(), [&](std::int64_t group) { return group != *run; });
    place_run(run - group_of_rank.begin(), end - group_of_rank.begin(), *run,
              cursors.at(static_cast<std::size_t>(*run)), mapping);
    run = end;
  }
  return mapping;
}

}  // namespace specs
