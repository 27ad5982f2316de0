#include "planner/sensitivity.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cost_models/estimate.h"
#include "planner/branch_and_bound.h"
#include "planner/pricing.h"
#include "planner/space.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

constexpr double more = 1.1;

using Change = std::function<void(specs::ClusterSpec&)>;

void for_each_node(specs::ClusterSpec& cluster, const std::function<void(specs::NodeSpec&)>& change) {
  for (specs::ClusterGroup& group : cluster.groups) change(group.node);
}

void raise_arithmetic(specs::ClusterSpec& cluster) {
  for_each_node(cluster, [](specs::NodeSpec& node) {
    for (auto& [precision, rate] : node.device.peak_flops) rate *= more;
    for (specs::GemmRate& rate : node.device.gemm_rates) rate.flops_per_second *= more;
  });
}

void raise_memory_bandwidth(specs::ClusterSpec& cluster) {
  for_each_node(cluster, [](specs::NodeSpec& node) { node.device.memory_bytes_per_second *= more; });
}

void raise_link(specs::ClusterSpec& cluster) {
  for_each_node(cluster, [](specs::NodeSpec& node) {
    node.link_bytes_per_second *= more;
    for (specs::CollectiveRate& rate : node.collective_rates) rate.bytes_per_second *= more;
  });
}

void raise_network(specs::ClusterSpec& cluster) {
  cluster.network.node_bytes_per_second *= more;
  for (specs::ClusterGroup& group : cluster.groups)
    if (group.network) group.network->node_bytes_per_second *= more;
}

double step_of_new_optimum(const specs::Experiment& experiment, double otherwise) {
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(experiment.training.stack);
  if (!stack) return otherwise;
  const cost_models::Estimator estimator(experiment);
  const Space space(experiment, *stack);
  const SearchResult result =
      branch_and_bound(experiment, space, estimator, EstimatorPricer(experiment, estimator));
  return result.best ? std::min(otherwise, result.best->price.step_seconds) : otherwise;
}

}  // namespace

std::vector<SensitivityEntry> sensitivity(const specs::Experiment& experiment,
                                          const specs::Placement& placement) {
  const double step_seconds = cost_models::Estimator(experiment).estimate(placement).step_seconds;
  std::vector<SensitivityEntry> entries;
  const auto add = [&](std::string change, double seconds) {
    entries.push_back({std::move(change), seconds, 1 - seconds / step_seconds});
  };
  const std::vector<std::pair<std::string, Change>> changes{
      {"10 % more arithmetic (FLOP/s)", raise_arithmetic},
      {"10 % more device memory bandwidth", raise_memory_bandwidth},
      {"10 % more bandwidth inside the node", raise_link},
      {"10 % more network bandwidth", raise_network},
  };
  for (const auto& [name, change] : changes) {
    specs::Experiment changed = experiment;
    change(changed.cluster);
    add(name, cost_models::Estimator(changed).estimate(placement).step_seconds);
  }
  specs::Experiment roomier = experiment;
  for_each_node(roomier.cluster, [](specs::NodeSpec& node) {
    node.device.memory_bytes =
        static_cast<std::int64_t>(static_cast<double>(node.device.memory_bytes) * more);
  });
  add("10 % more device memory, planned anew", step_of_new_optimum(roomier, step_seconds));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const SensitivityEntry& a, const SensitivityEntry& b) { return a.saving > b.saving; });
  return entries;
}

}  // namespace planner
