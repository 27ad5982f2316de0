#include "planner/questions/sensitivity.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/space.h"
#include "specs/language/catalog.h"
#include "specs/schedule/generate.h"

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
  const specs::Result<specs::StackSpec> stack = specs::stack_of(experiment.training);
  if (!stack) return otherwise;
  const cost_models::Estimator estimator(experiment);
  const Space space(experiment, *stack);
  const SearchResult result =
      branch_and_bound(experiment, space, estimator, *make_pricer(experiment, *stack, estimator), nullptr,
                       WhereNothingFits::says_no_more);
  return result.best ? std::min(otherwise, result.best->price.step_seconds) : otherwise;
}

/// The smallest number of micro-batches of at least `wanted` that the placement's schedule takes.
std::optional<std::int64_t> possible_micro_batches(const specs::Placement& placement, std::int64_t wanted) {
  for (std::int64_t micro_batches = wanted; micro_batches <= 4 * wanted; ++micro_batches)
    if (specs::schedule_refusal(placement.schedule, placement.pipeline_ranks(), placement.virtual_stages,
                                micro_batches, placement.micro_batch_group)
            .empty())
      return micro_batches;
  return std::nullopt;
}

/// What of the step does not grow with its micro-batches is spread over more of them.
std::optional<SensitivityEntry> with_more_micro_batches(const specs::Experiment& experiment,
                                                        const specs::Placement& placement,
                                                        double step_seconds) {
  if (!placement.replica_shares.empty()) return std::nullopt;
  const std::int64_t now = placement.accumulation;
  const std::optional<std::int64_t> micro_batches = possible_micro_batches(placement, (11 * now + 9) / 10);
  if (!micro_batches) return std::nullopt;
  specs::Experiment larger = experiment;
  larger.training.global_batch = experiment.training.global_batch / now * *micro_batches;
  specs::Placement longer = placement;
  longer.accumulation = *micro_batches;
  const double seconds = cost_models::Estimator(larger).estimate(longer).step_seconds;
  // What does not grow with their number costs 1 − 1/1.1 less a token with a tenth more of them, 1 − now/m
  // less with the m that the schedule takes.
  const double ratio = static_cast<double>(*micro_batches) / static_cast<double>(now);
  const double spread_over_these = 1 - 1 / ratio, spread_over_a_tenth = 1 - 1 / more;
  const double saved = (step_seconds - seconds / ratio) * spread_over_a_tenth / spread_over_these;
  return SensitivityEntry{
      *micro_batches * 10 == now * 11
          ? std::string("10 % more micro-batches, for the same tokens")
          : fmt::format("10 % more micro-batches, for the same tokens (from {} for {})", *micro_batches, now),
      {},
      step_seconds - saved,
      saved / step_seconds};
}

}  // namespace

std::vector<SensitivityEntry> sensitivity(const specs::Experiment& experiment,
                                          const specs::Placement& placement) {
  const double step_seconds = cost_models::Estimator(experiment).estimate(placement).step_seconds;
  std::vector<SensitivityEntry> entries;
  const auto add = [&](std::string change, std::string resource, double seconds) {
    entries.push_back({std::move(change), std::move(resource), seconds, 1 - seconds / step_seconds});
  };
  const std::vector<std::pair<std::string, Change>> changes{
      {"arithmetic (FLOP/s)", raise_arithmetic},
      {"device memory bandwidth", raise_memory_bandwidth},
      {"bandwidth inside the node", raise_link},
      {"network bandwidth", raise_network},
  };
  for (const auto& [name, change] : changes) {
    specs::Experiment changed = experiment;
    change(changed.cluster);
    add("10 % more " + name, name, cost_models::Estimator(changed).estimate(placement).step_seconds);
  }
  specs::Experiment roomier = experiment;
  for_each_node(roomier.cluster, [](specs::NodeSpec& node) {
    node.device.memory_bytes =
        static_cast<std::int64_t>(static_cast<double>(node.device.memory_bytes) * more);
  });
  add("10 % more device memory, planned anew", "device memory", step_of_new_optimum(roomier, step_seconds));
  if (auto entry = with_more_micro_batches(experiment, placement, step_seconds))
    entries.push_back(std::move(*entry));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const SensitivityEntry& a, const SensitivityEntry& b) { return a.saving > b.saving; });
  return entries;
}

}  // namespace planner
