#include <string>

#include <fmt/format.h>

#include "specs/language/checks.h"

namespace specs {

namespace {

constexpr std::int64_t most_devices = 10'000'000;

/// The keys of a group: those of [cluster] itself, or of its [[cluster.group]].
std::string group_path(const ClusterSpec& cluster, std::size_t index, const CheckReport& report) {
  const bool listed = cluster.groups.size() > 1 || report.given("cluster.group");
  return listed ? fmt::format("cluster.group.{}", index) : std::string("cluster");
}

void check_node(const ClusterGroup& group, const std::string& path, CheckReport& report) {
  const NodeSpec& node = group.node;
  const std::string node_path = path + ".node";
  if (node.device.memory_bytes == 0 || node.device.peak_flops.empty())
    report.error(
        {node_path + ".device", node_path, path},
        fmt::format("{}.device lacks {}", node_path, node.device.memory_bytes == 0 ? "memory" : "peak_flops"),
        "name a device of the catalog (`dsplan catalog device` lists them), or write it out with memory, "
        "memory_bandwidth and peak_flops");
  else if (node.device.memory_bytes_per_second <= 0)
    report.error({node_path + ".device", node_path, path},
                 fmt::format("{}.device lacks memory_bandwidth", node_path), "give memory_bandwidth");
  if (node.devices > 1 && node.link_bytes_per_second <= 0)
    report.error({node_path + ".link_bandwidth", node_path, path},
                 fmt::format("{} has {} devices and no link_bandwidth between them", node_path, node.devices),
                 "give link and link_bandwidth");
  if (node.link_domain_devices > 0 && node.link_domain_devices < node.devices)
    report.error({node_path + ".link_domain_devices", node_path + ".devices"},
                 fmt::format("{}.link_domain_devices {} < devices {}", node_path, node.link_domain_devices,
                             node.devices),
                 "a link domain holds at least the node");
  const bool cpu = node.device.generation == "cpu";
  if (cpu && node.cpu_cores > 0 && node.devices > node.cpu_cores)
    report.warning(
        {node_path + ".devices", node_path},
        fmt::format("{}.devices {} > cpu_cores {}: ranks will share cores and run slower than planned",
                    node_path, node.devices, node.cpu_cores));
}

}  // namespace

void check_cluster(const ClusterSpec& cluster, CheckReport& report) {
  for (const char* key : {"cluster.node", "cluster.nodes"})
    if (report.given("cluster.group") && report.given(key))
      report.error({key}, fmt::format("{} beside [[cluster.group]]: the groups name all nodes", key),
                   "move it into a [[cluster.group]] of its own");
  double devices = 0;
  std::int64_t nodes = 0;
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    const ClusterGroup& group = cluster.groups[i];
    check_node(group, group_path(cluster, i, report), report);
    devices += static_cast<double>(group.nodes) * static_cast<double>(group.node.devices);
    nodes += group.nodes;
  }
  if (devices > static_cast<double>(most_devices))
    report.error({"cluster.nodes", "cluster.group", "cluster"},
                 fmt::format("the cluster has {:.0f} devices, above the bound of {}", devices, most_devices),
                 "check nodes and devices");
  if (nodes > 1 && cluster.network.node_bytes_per_second <= 0)
    report.error({"cluster.network", "cluster.nodes", "cluster"},
                 fmt::format("cluster.network is missing: {} nodes and no network between them", nodes),
                 "name a network (`dsplan catalog network` lists them), for example \"ib-ndr-8x400\"");
  for (std::size_t i = 1; i < cluster.network.levels.size(); ++i) {
    const std::int64_t below = cluster.network.levels[i - 1].nodes;
    const std::int64_t above = cluster.network.levels[i].nodes;
    if (below == 0 || (above != 0 && above < below))
      report.error(
          {fmt::format("cluster.network.levels.{}", i), "cluster.network"},
          fmt::format("cluster.network.levels.{}.nodes {} does not hold level {}'s {} (0: all nodes)", i,
                      above, i - 1, below),
          "levels go from the leaves up");
  }
}

}  // namespace specs
