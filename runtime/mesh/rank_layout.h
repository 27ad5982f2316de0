// Which rank stands where: the pure part of the mesh, from a placement alone.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"
#include "specs/plan/placement.h"

namespace runtime {

/// Position of a rank on the axes of the placement.
struct MeshCoordinates {
  std::int64_t pipeline = 0;
  std::int64_t data = 0;
  std::int64_t context = 0;
  std::int64_t tensor = 0;
  bool operator==(const MeshCoordinates&) const = default;
};

enum class MeshGroup : std::uint8_t {
  world,
  tensor,     ///< one shard of each parameter per rank
  context,    ///< one part of the sequence per rank
  data,       ///< one share of the batch per rank
  gradient,   ///< data × context: the ranks that hold the same parameters
  shard,      ///< the part of `gradient` that together holds one copy of what ZeRO shards
  replica,    ///< the part of `gradient` that holds the same shard: one rank of each shard group
  pipeline,   ///< in order of the pipeline rank
  embedding,  ///< the ranks of a pipeline line that hold the first and the last stage
  model,      ///< tensor × pipeline: together one copy of the parameters
  stage,      ///< all ranks of one pipeline rank
};

}  // namespace runtime

template <>
struct specs::EnumNames<runtime::MeshGroup> {
  static constexpr std::array<std::pair<runtime::MeshGroup, std::string_view>, 11> names{{
      {runtime::MeshGroup::world, "world"},
      {runtime::MeshGroup::tensor, "tensor"},
      {runtime::MeshGroup::context, "context"},
      {runtime::MeshGroup::data, "data"},
      {runtime::MeshGroup::gradient, "gradient"},
      {runtime::MeshGroup::shard, "shard"},
      {runtime::MeshGroup::replica, "replica"},
      {runtime::MeshGroup::pipeline, "pipeline"},
      {runtime::MeshGroup::embedding, "embedding"},
      {runtime::MeshGroup::model, "model"},
      {runtime::MeshGroup::stage, "stage"},
  }};
};

namespace runtime {

/// The stages that a pipeline rank holds, in the order the data flows.
std::vector<std::int64_t> stages_of(const specs::Placement& placement, std::int64_t pipeline_rank);

/// Requires 0 ≤ rank < placement.world_size() and stages of one pipeline rank on the same devices and mesh.
MeshCoordinates coordinates_of(const specs::Placement& placement, std::int64_t rank);
std::int64_t rank_at(const specs::Placement& placement, const MeshCoordinates& coordinates);

/// Ranks of a stage's shard groups: neighbours in the order of the gradient group. A scope of one node counts
/// as the world unless `shard_ranks` says how many ranks of the group a node holds.
std::int64_t shard_ranks_of(const specs::PipelineStage& stage);

/// All groups of a kind, members in group order, groups in order of their first member. They tile the world,
/// but for `embedding`, which has only the ranks of the first and the last stage. Requires that all stages
/// have the same mesh degrees.
std::vector<std::vector<std::int64_t>> groups_of(const specs::Placement& placement, MeshGroup kind);

}  // namespace runtime
