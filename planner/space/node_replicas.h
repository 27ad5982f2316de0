// Which replicas of a parameter share a node.
#pragma once

#include <cstdint>

#include "planner/space/legality.h"
#include "specs/plan/placement.h"

namespace planner {

/// Whether all nodes of `devices` hold equally many replicas of each parameter, as shards within a node need:
/// the data and context axes lie beside each other, their ranks `stride` apart, and either no two of them
/// share a node, or a node holds devices / stride of them with none left over.
bool nodes_hold_equal_replicas(const MeshDegrees& mesh, const specs::AxisOrder& order, std::int64_t devices);

}  // namespace planner
