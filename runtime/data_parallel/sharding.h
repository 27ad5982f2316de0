// What ZeRO does on this mesh: which ranks share one copy of the sharded states, and which hold the same.
#pragma once

#include "runtime/mesh/mesh.h"
#include "specs/plan/placement.h"

namespace runtime {

struct Sharding {
  /// 0 nothing sharded, 1 optimizer states, 2 + gradients, 3 + parameters. 0 where there is one replica.
  std::int64_t stage = 0;
  /// With a stage of 1 or more: the ranks whose shards together are one copy.
  const Communicator* shard = nullptr;
  /// The ranks that hold the same shard, or without shards the same whole.
  const Communicator* holders = nullptr;
};

/// The mesh must outlive the result.
inline Sharding sharding_of(const Mesh& mesh, const specs::ZeroTreatment& zero) {
  if (zero.stage == 0 || mesh.gradient().size() == 1) return {0, nullptr, &mesh.gradient()};
  return {zero.stage, &mesh.shard(), &mesh.replica()};
}

}  // namespace runtime
