#include "specs/plan/rank_mapping.h"

#include <algorithm>
#include <array>

namespace specs {
namespace {

/// Degree and coordinate of an axis of a grid.
struct Digit {
  std::int64_t degree = 1;
  std::int64_t RankCoordinates::*coordinate = nullptr;
};
using Digits = std::array<Digit, 3>;

Digit dense_digit(const StageMesh& mesh, MeshAxis axis) {
  switch (axis) {
    case MeshAxis::tensor:
      return {mesh.tensor, &RankCoordinates::tensor};
    case MeshAxis::context:
      return {mesh.context, &RankCoordinates::context};
    default:
      return {mesh.data, &RankCoordinates::data};
  }
}

Digits dense_digits(const StageMesh& mesh) {
  Digits digits;
  std::size_t next = 0;
  for (MeshAxis axis : mesh.order)
    if (axis != MeshAxis::pipeline) digits.at(next++) = dense_digit(mesh, axis);
  return digits;
}

Digits expert_digits(const StageMesh& mesh) {
  return {Digit{mesh.expert_tensor, &RankCoordinates::expert_tensor},
          Digit{mesh.expert, &RankCoordinates::expert},
          Digit{mesh.expert_data(), &RankCoordinates::expert_data}};
}

void split(std::int64_t index, const Digits& digits, RankCoordinates& coordinates) {
  for (const Digit& digit : digits) {
    coordinates.*digit.coordinate = index % digit.degree;
    index /= digit.degree;
  }
}

std::int64_t join(const RankCoordinates& coordinates, const Digits& digits) {
  std::int64_t index = 0;
  std::int64_t weight = 1;
  for (const Digit& digit : digits) {
    index += weight * (coordinates.*digit.coordinate);
    weight *= digit.degree;
  }
  return index;
}

/// The ranks along one digit of a grid.
std::vector<std::int64_t> group_along(const PipelineStage& stage, const Digits& digits, const Digit& digit,
                                      std::int64_t rank) {
  const std::optional<std::int64_t> index = index_in(stage.devices, rank);
  if (!index) return {};
  RankCoordinates coordinates = coordinates_of(stage.mesh, *index);
  std::vector<std::int64_t> group;
  for (std::int64_t position = 0; position < digit.degree; ++position) {
    coordinates.*digit.coordinate = position;
    group.push_back(stage.devices.rank(join(coordinates, digits)));
  }
  return group;
}

}  // namespace

RankCoordinates coordinates_of(const StageMesh& mesh, std::int64_t index) {
  RankCoordinates coordinates;
  split(index, dense_digits(mesh), coordinates);
  split(index, expert_digits(mesh), coordinates);
  return coordinates;
}

std::int64_t index_of(const StageMesh& mesh, const RankCoordinates& coordinates) {
  return join(coordinates, dense_digits(mesh));
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
  if (axis == MeshAxis::pipeline) return {};
  return group_along(stage, dense_digits(stage.mesh), dense_digit(stage.mesh, axis), rank);
}

std::vector<std::int64_t> expert_axis_group(const PipelineStage& stage, ExpertAxis axis, std::int64_t rank) {
  const Digits digits = expert_digits(stage.mesh);
  return group_along(stage, digits, digits.at(static_cast<std::size_t>(axis)), rank);
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
    if (exception.rank == rank)
      return DeviceLocation{exception.device_group, exception.node, exception.device};
  for (const HostRange& range : mapping.ranges) {
    const std::int64_t offset = rank - range.first_rank;
    if (offset < 0 || offset >= range.ranks) continue;
    const std::int64_t device = range.first_device + offset;
    return DeviceLocation{range.device_group, range.first_node + device / range.ranks_per_node,
                          device % range.ranks_per_node};
  }
  return std::nullopt;
}

namespace {

/// Ranks [first, end) on the next devices of a group of which `used` are taken.
HostRange next_range(std::int64_t first, std::int64_t end, std::int64_t group, std::int64_t devices_per_node,
                     std::int64_t used) {
  return {.first_rank = first,
          .ranks = end - first,
          .device_group = group,
          .first_node = used / devices_per_node,
          .first_device = used % devices_per_node,
          .ranks_per_node = devices_per_node};
}

/// The device group of a data-parallel replica: its share's, or the stage's where shares are equal.
std::int64_t group_of_replica(const Placement& placement, std::int64_t replica, std::int64_t of_stage) {
  for (const ReplicaShare& share : placement.replica_shares) {
    if (replica < share.replicas) return share.device_group;
    replica -= share.replicas;
  }
  return of_stage;
}

}  // namespace

RankMapping consecutive_mapping(const Placement& placement, const ClusterSpec& cluster) {
  std::vector<std::int64_t> used(cluster.groups.size(), 0);
  std::vector<std::int64_t> group_of_rank(static_cast<std::size_t>(placement.world_size()), 0);
  for (const PipelineStage& stage : placement.stages)
    for (std::int64_t index = 0; index < stage.devices.size(); ++index)
      group_of_rank.at(static_cast<std::size_t>(stage.devices.rank(index))) =
          group_of_replica(placement, coordinates_of(stage.mesh, index).data, stage.device_group);
  RankMapping mapping;
  for (auto run = group_of_rank.begin(); run != group_of_rank.end();) {
    const auto end =
        std::find_if(run, group_of_rank.end(), [&](std::int64_t group) { return group != *run; });
    const std::size_t group = static_cast<std::size_t>(*run);
    mapping.ranges.push_back(next_range(run - group_of_rank.begin(), end - group_of_rank.begin(), *run,
                                        cluster.groups.at(group).node.devices, used.at(group)));
    used.at(group) += end - run;
    run = end;
  }
  return mapping;
}

}  // namespace specs
