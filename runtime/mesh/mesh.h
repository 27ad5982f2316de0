// One rank's place in the placement and its communicators along every axis.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/mesh/rank_layout.h"
#include "specs/plan/placement.h"

namespace runtime {

class ProcessGroups;

class Mesh {
 public:
  /// Collective over ranks 0 … placement.world_size() − 1 of `groups`; the calling rank is one of them. Every
  /// rank goes through all groups in the same order and makes those it belongs to.
  Mesh(const specs::Placement& placement, ProcessGroups& groups);

  /// A mesh of one rank, with no process group: the single-process reference.
  static Mesh single();

  std::int64_t rank() const { return rank_; }
  std::int64_t world_size() const { return world().size(); }
  const MeshCoordinates& coordinates() const { return coordinates_; }

  std::int64_t pipeline_rank() const { return coordinates_.pipeline; }
  std::int64_t pipeline_ranks() const { return pipeline().size(); }
  /// Stages this rank holds, in the order the data flows.
  const std::vector<std::int64_t>& stages() const { return stages_; }

  const Communicator& world() const { return group(MeshGroup::world); }
  const Communicator& tensor() const { return group(MeshGroup::tensor); }
  const Communicator& context() const { return group(MeshGroup::context); }
  const Communicator& data() const { return group(MeshGroup::data); }
  const Communicator& gradient() const { return group(MeshGroup::gradient); }
  const Communicator& shard() const { return group(MeshGroup::shard); }
  const Communicator& replica() const { return group(MeshGroup::replica); }
  /// Group rank = pipeline rank.
  const Communicator& pipeline() const { return group(MeshGroup::pipeline); }
  /// For the tied table; a group of one on a rank that holds neither end, or both.
  const Communicator& embedding() const { return group(MeshGroup::embedding); }
  const Communicator& model() const { return group(MeshGroup::model); }
  const Communicator& group(MeshGroup kind) const { return communicators_.at(kind); }

 private:
  Mesh() = default;

  std::int64_t rank_ = 0;
  MeshCoordinates coordinates_;
  std::vector<std::int64_t> stages_;
  std::map<MeshGroup, Communicator> communicators_;
};

}  // namespace runtime
