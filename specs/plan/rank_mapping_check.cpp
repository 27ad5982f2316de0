#include "specs/plan/rank_mapping_check.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace specs {
namespace {

/// A device by its number in its group; −1 for a rank that nothing places.
struct Device {
  std::int64_t group = 0;
  std::int64_t number = -1;
};

class MappingCheck {
 public:
  MappingCheck(const RankMapping& mapping, const Placement& placement, const ClusterSpec& cluster)
      : mapping_(mapping),
        cluster_(cluster),
        placement_(placement),
        devices_(size_of(placement.world_size())) {}

  std::vector<RankMappingViolation> run() {
    for (std::size_t index = 0; index < mapping_.ranges.size(); ++index) place_range(index);
    for (std::size_t index = 0; index < mapping_.exceptions.size(); ++index) place_exception(index);
    if (violations_.empty()) check_each_rank();
    if (violations_.empty()) check_groups();
    return violations_;
  }

 private:
  static std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }
  std::int64_t world() const { return static_cast<std::int64_t>(devices_.size()); }

  void refuse(std::string field, std::string message) {
    violations_.push_back({std::move(field), std::move(message)});
  }

  /// The group, or null with a violation.
  const ClusterGroup* group(const std::string& field, std::int64_t index) {
    if (index >= 0 && index < static_cast<std::int64_t>(cluster_.groups.size()))
      return &cluster_.groups[size_of(index)];
    refuse(field, fmt::format("device_group {} of a cluster with {} groups", index, cluster_.groups.size()));
    return nullptr;
  }

  void place_range(std::size_t index) {
    const HostRange& range = mapping_.ranges[index];
    const std::string field = fmt::format("/ranges/{}", index);
    const ClusterGroup* nodes = group(field, range.device_group);
    if (nodes == nullptr) return;
    if (range.first_rank < 0 || range.ranks < 1 || range.ranks > world() ||
        range.first_rank > world() - range.ranks)
      return refuse(field, fmt::format("ranks {} to {} of a world of {}", range.first_rank,
                                       range.first_rank + range.ranks - 1, world()));
    if (range.ranks_per_node < 1 || range.ranks_per_node > nodes->node.devices)
      return refuse(
          field, fmt::format("{} ranks on nodes of {} devices", range.ranks_per_node, nodes->node.devices));
    if (range.first_node < 0 || range.first_node >= nodes->nodes || range.first_device < 0 ||
        range.first_device >= range.ranks_per_node)
      return refuse(
          field, fmt::format("starts at node {}, device {} of {} nodes with {} ranks each", range.first_node,
                             range.first_device, nodes->nodes, range.ranks_per_node));
    for (std::int64_t offset = 0; offset < range.ranks; ++offset) {
      const std::int64_t slot = range.first_device + offset;
      const std::int64_t node = range.first_node + slot / range.ranks_per_node;
      if (node >= nodes->nodes)
        return refuse(field, fmt::format("reaches node {}, the group has {}", node, nodes->nodes));
      Device& device = devices_[size_of(range.first_rank + offset)];
      if (device.number >= 0)
        return refuse(field, fmt::format("rank {} stands in two ranges", range.first_rank + offset));
      device = {range.device_group, node * nodes->node.devices + slot % range.ranks_per_node};
    }
  }

  void place_exception(std::size_t index) {
    const RankException& exception = mapping_.exceptions[index];
    const std::string field = fmt::format("/exceptions/{}", index);
    const ClusterGroup* nodes = group(field, exception.device_group);
    if (nodes == nullptr) return;
    if (exception.rank < 0 || exception.rank >= world())
      return refuse(field, fmt::format("rank {} of a world of {}", exception.rank, world()));
    if (exception.node < 0 || exception.node >= nodes->nodes || exception.device < 0 ||
        exception.device >= nodes->node.devices)
      return refuse(field, fmt::format("node {}, device {} of {} nodes with {} devices", exception.node,
                                       exception.device, nodes->nodes, nodes->node.devices));
    devices_[size_of(exception.rank)] = {exception.device_group,
                                         exception.node * nodes->node.devices + exception.device};
  }

  void check_each_rank() {
    std::vector<std::vector<std::int64_t>> holder;
    for (const ClusterGroup& nodes : cluster_.groups) holder.emplace_back(size_of(nodes.devices()), -1);
    for (std::int64_t rank = 0; rank < world(); ++rank) {
      const Device& device = devices_[size_of(rank)];
      if (device.number < 0) return refuse("", fmt::format("rank {} has no device", rank));
      std::int64_t& other = holder[size_of(device.group)][size_of(device.number)];
      if (other >= 0) return refuse("", fmt::format("ranks {} and {} have the same device", other, rank));
      other = rank;
    }
  }

  /// Unequal shares place replicas on groups of their own and override the stage's.
  void check_groups() {
    if (!placement_.replica_shares.empty()) return;
    for (const PipelineStage& stage : placement_.stages)
      for (std::int64_t index = 0; index < stage.devices.size(); ++index) {
        const std::int64_t rank = stage.devices.rank(index);
        const std::int64_t group = devices_[size_of(rank)].group;
        if (group == stage.device_group) continue;
        return refuse("", fmt::format("rank {} is on device group {}, its stage asks for {}", rank, group,
                                      stage.device_group));
      }
  }

  const RankMapping& mapping_;
  const ClusterSpec& cluster_;
  const Placement& placement_;
  std::vector<Device> devices_;
  std::vector<RankMappingViolation> violations_;
};

}  // namespace

std::vector<RankMappingViolation> rank_mapping_violations(const RankMapping& mapping,
                                                          const Placement& placement,
                                                          const ClusterSpec& cluster) {
  return MappingCheck(mapping, placement, cluster).run();
}

}  // namespace specs
