// Where a rank stands: its coordinates on the mesh of its stage, and its device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "specs/language/cluster.h"
#include "specs/plan/placement.h"
#include "specs/plan/plan.h"

namespace specs {

/// Coordinates on the two grids of one stage, which number the same ranks: tensor × context × data for dense
/// parameters, expert_tensor × expert × expert_data for those of experts.
struct RankCoordinates {
  std::int64_t tensor = 0;
  std::int64_t context = 0;
  std::int64_t data = 0;
  std::int64_t expert_tensor = 0;
  std::int64_t expert = 0;
  std::int64_t expert_data = 0;
  bool operator==(const RankCoordinates&) const = default;
};

/// Coordinates of the `index`-th rank of a stage, 0 ≤ index < mesh.ranks(). The axes of `mesh.order` fill
/// consecutive ranks, innermost first. The expert grid numbers the same ranks with expert_tensor innermost,
/// then expert, then expert_data.
RankCoordinates coordinates_of(const StageMesh& mesh, std::int64_t index);

/// The inverse, from tensor, context and data.
std::int64_t index_of(const StageMesh& mesh, const RankCoordinates& coordinates);

/// The index of `rank` in a device set, or nothing where it does not belong.
std::optional<std::int64_t> index_in(const DeviceSet& devices, std::int64_t rank);

/// The pipeline rank that `rank` works for.
std::optional<std::int64_t> pipeline_rank_of(const Placement& placement, std::int64_t rank);

/// The ranks that differ from `rank` at most in their coordinate on `axis` of this stage's mesh, ordered by
/// it. Not for the pipeline axis, which no single stage has.
std::vector<std::int64_t> axis_group(const PipelineStage& stage, MeshAxis axis, std::int64_t rank);

enum class ExpertAxis : std::uint8_t { expert_tensor, expert, expert_data };

/// The same on the expert grid.
std::vector<std::int64_t> expert_axis_group(const PipelineStage& stage, ExpertAxis axis, std::int64_t rank);

/// The ranks, in order of pipeline rank, that hold the same index in their stages as `rank`. Where the
/// stages' meshes differ in size there is no such group and the result is empty.
std::vector<std::int64_t> pipeline_group(const Placement& placement, std::int64_t rank);

struct DeviceLocation {
  std::int64_t device_group = 0;
  std::int64_t node = 0;    ///< in the group
  std::int64_t device = 0;  ///< in the node
  bool operator==(const DeviceLocation&) const = default;
};

/// The device of a rank, or nothing where the mapping does not know the rank.
std::optional<DeviceLocation> locate(const RankMapping& mapping, std::int64_t rank);

/// Ranks in their order on the devices of the group that their replica, or else their stage, asks for, nodes
/// filled one after the other.
RankMapping consecutive_mapping(const Placement& placement, const ClusterSpec& cluster);

}  // namespace specs
