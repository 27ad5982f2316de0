#include "planner/space/node_replicas.h"

namespace planner {
namespace {

bool holds_replicas(specs::MeshAxis axis) {
  return axis == specs::MeshAxis::data || axis == specs::MeshAxis::context;
}

}  // namespace

bool nodes_hold_equal_replicas(const MeshDegrees& mesh, const specs::AxisOrder& order, std::int64_t devices) {
  std::int64_t stride = 1, replicas = 1;
  bool ended = false;
  for (const specs::MeshAxis axis : order) {
    const std::int64_t degree = degree_of(mesh, axis);
    if (degree == 1) continue;
    if (holds_replicas(axis)) {
      if (ended) return false;
      replicas *= degree;
    } else if (replicas == 1) {
      stride *= degree;
    } else {
      ended = true;
    }
  }
  if (stride >= devices) return true;
  if (devices % stride != 0) return false;
  const std::int64_t in_node = devices / stride;
  return replicas % in_node == 0 || in_node % replicas == 0;
}

}  // namespace planner
