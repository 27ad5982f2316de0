#include "planner/space/group_layouts.h"

#include <algorithm>
#include <numeric>

namespace planner {

bool is_mixed(const specs::ClusterSpec& cluster) { return cluster.groups.size() > 1; }

GroupLayouts::GroupLayouts(const specs::Experiment& experiment)
    : unequal_shares_(experiment.search.unequal_shares) {
  for (const specs::ClusterGroup& group : experiment.cluster.groups) devices_.push_back(group.devices());
  std::vector<std::size_t> order(groups());
  std::iota(order.begin(), order.end(), 0u);
  do orders_.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
}

double GroupLayouts::share_of_devices(std::size_t group) const {
  const std::int64_t all = std::accumulate(devices_.begin(), devices_.end(), std::int64_t{0});
  return static_cast<double>(devices_[group]) / static_cast<double>(all);
}

bool GroupLayouts::ranks_lie_in_groups(std::int64_t rank_devices) const {
  return std::all_of(devices_.begin(), devices_.end(),
                     [&](std::int64_t devices) { return devices % rank_devices == 0; });
}

bool GroupLayouts::replicas_lie_in_groups(std::int64_t replica_devices) const {
  return groups() == 2 && unequal_shares_ && ranks_lie_in_groups(replica_devices);
}

std::vector<std::size_t> GroupLayouts::group_of_rank(const std::vector<std::size_t>& order,
                                                     std::int64_t rank_devices) const {
  std::vector<std::size_t> groups;
  for (const std::size_t group : order)
    groups.insert(groups.end(), static_cast<std::size_t>(devices_[group] / rank_devices), group);
  return groups;
}

ReplicaShares GroupLayouts::shares(std::int64_t replica_devices, std::int64_t micro_batches) const {
  ReplicaShares shares;
  if (!replicas_lie_in_groups(replica_devices)) return shares;
  shares.replicas = {devices_[0] / replica_devices, devices_[1] / replica_devices};
  const std::int64_t common = std::gcd(shares.replicas[0], shares.replicas[1]);
  shares.step = {shares.replicas[1] / common, shares.replicas[0] / common};
  for (std::int64_t share = 1; share <= shares.step[0]; ++share) {
    const std::int64_t rest = micro_batches - share * shares.replicas[0];
    if (rest < shares.replicas[1] || rest % shares.replicas[1] != 0) continue;
    shares.first = share;
    shares.of_first = rest / shares.replicas[1];
    shares.count = (shares.of_first - 1) / shares.step[1] + 1;
    break;
  }
  return shares;
}

}  // namespace planner
