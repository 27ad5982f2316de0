#include "runtime/mesh/mesh.h"

#include <algorithm>
#include <string>

#include "runtime/comm/process_groups.h"

namespace runtime {

Mesh::Mesh(const specs::Placement& placement, ProcessGroups& groups)
    : rank_(groups.rank()),
      coordinates_(coordinates_of(placement, groups.rank())),
      stages_(stages_of(placement, coordinates_.pipeline)) {
  for (const auto& [kind, name] : specs::EnumNames<MeshGroup>::names) {
    Communicator mine(std::string(name), rank_);
    for (const std::vector<std::int64_t>& ranks : groups_of(placement, kind))
      if (std::find(ranks.begin(), ranks.end(), rank_) != ranks.end())
        mine = groups.communicator(std::string(name), ranks);
    communicators_.emplace(kind, std::move(mine));
  }
}

Mesh Mesh::single() {
  Mesh mesh;
  mesh.stages_ = {0};
  for (const auto& [kind, name] : specs::EnumNames<MeshGroup>::names)
    mesh.communicators_.emplace(kind, Communicator(std::string(name)));
  return mesh;
}

}  // namespace runtime
