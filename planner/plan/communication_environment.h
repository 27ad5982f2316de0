// Environment of the communication library, each variable with the reason for its value.
#pragma once

#include <vector>

#include "specs/language/cluster.h"
#include "specs/plan/plan.h"

namespace planner {

/// Variables for NCCL where ranks on several nodes meet over TCP sockets; none for CPUs, for one node and
/// for RDMA networks, where the library's own choice is right.
std::vector<specs::EnvironmentSetting> communication_environment(const specs::ClusterSpec& cluster,
                                                                 std::int64_t nodes_in_use);

}  // namespace planner
