#include "planner/plan/communication_environment.h"

#include <fmt/format.h>

namespace planner {
namespace {

/// Practice on TCP clusters: from here on one socket per connection no longer fills the link.
constexpr std::int64_t nodes_that_need_more_sockets = 32;

}  // namespace

std::vector<specs::EnvironmentSetting> communication_environment(const specs::ClusterSpec& cluster,
                                                                 std::int64_t nodes_in_use) {
  const bool on_cpus = cluster.groups.front().node.device.generation == "cpu";
  const bool over_sockets = cluster.network.kind == specs::NetworkKind::ethernet && !cluster.network.rdma;
  if (on_cpus || !over_sockets || nodes_in_use < 2) return {};
  std::vector<specs::EnvironmentSetting> settings;
  settings.push_back(
      {"NCCL_ALGO", "Tree",
       fmt::format("{} nodes over TCP: a tree takes log2(nodes) steps of socket latency, a ring all of "
                   "them",
                   nodes_in_use)});
  if (nodes_in_use > nodes_that_need_more_sockets) {
    const std::string reason = fmt::format(
        "{} nodes over TCP (more than {}): one socket per connection does not fill "
        "the link; 8 threads × 4 sockets do",
        nodes_in_use, nodes_that_need_more_sockets);
    settings.push_back({"NCCL_SOCKET_NTHREADS", "8", reason});
    settings.push_back({"NCCL_NSOCKS_PERTHREAD", "4", reason});
  }
  return settings;
}

}  // namespace planner
