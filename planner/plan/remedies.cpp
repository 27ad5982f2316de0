#include "planner/plan/remedies.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost_models/estimate.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/group_layouts.h"
#include "planner/space/restrictions.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"
#include "specs/language/catalog.h"
#include "specs/language/read_experiment.h"

namespace planner {
namespace {

constexpr std::int64_t most_times_as_many_nodes = 64;

/// The best placement of a changed experiment, or nothing where it is illegal or nothing fits.
std::optional<PricedCandidate> best_of(const specs::Experiment& experiment) {
  if (specs::check_experiment(experiment).has_errors()) return std::nullopt;
  const specs::Result<specs::StackSpec> stack = specs::stack_of(experiment.training);
  if (!stack) return std::nullopt;
  const cost_models::Estimator estimator(experiment);
  const Space space(experiment, *stack);
  return branch_and_bound(experiment, space, estimator, *make_pricer(experiment, *stack, estimator), nullptr,
                          WhereNothingFits::says_no_more)
      .best;
}

void add(std::vector<Remedy>& remedies, std::string change, std::string setting,
         const std::optional<PricedCandidate>& best) {
  if (best) remedies.push_back({std::move(change), std::move(setting), *best});
}

void try_more_nodes(const specs::Experiment& experiment, std::vector<Remedy>& remedies) {
  const std::int64_t nodes = experiment.cluster.groups.front().nodes;
  const auto best_with = [&](std::int64_t count) {
    specs::Experiment changed = experiment;
    changed.cluster.groups.front().nodes = count;
    return best_of(changed);
  };
  std::int64_t too_few = nodes, enough = 2 * nodes;
  std::optional<PricedCandidate> best = best_with(enough);
  while (!best && enough < most_times_as_many_nodes * nodes) {
    too_few = enough;
    enough *= 2;
    best = best_with(enough);
  }
  if (!best) return;
  while (enough - too_few > 1) {
    const std::int64_t middle = too_few + (enough - too_few) / 2;
    if (auto found = best_with(middle)) {
      enough = middle;
      best = std::move(found);
    } else {
      too_few = middle;
    }
  }
  add(remedies, fmt::format("{} nodes instead of {}", format_count(enough), format_count(nodes)),
      fmt::format("cluster.nodes={}", enough), best);
}

/// Lifts one restriction at a time.
void try_without_restrictions(const specs::Experiment& experiment, std::vector<Remedy>& remedies) {
  for (const Restriction* restriction : restrictions_of(experiment.search)) {
    specs::Experiment changed = experiment;
    restriction->lift(changed.search);
    add(remedies, fmt::format("no restriction of [search] {}", restriction->key),
        fmt::format("search.{}={}", restriction->key, restriction->free_value), best_of(changed));
  }
}

/// Where [search] names the shares of a part that may leave the device: others, the nearest first.
void try_other_shares(const specs::Experiment& experiment, std::vector<Remedy>& remedies) {
  using Options = std::vector<specs::OffloadOption>;
  const auto try_part = [&](std::string_view key, Options specs::SearchSpec::*part) {
    const Options& wanted = experiment.search.*part;
    std::vector<std::pair<std::int64_t, specs::OffloadOption>> by_distance;
    for (const specs::OffloadOption& named : wanted)
      for (std::int64_t eighths = 1; named.eighths > 0 && eighths <= 8; ++eighths)
        if (!specs::allows(wanted, named.device, eighths))
          by_distance.emplace_back(std::abs(named.eighths - eighths),
                                   specs::OffloadOption{named.device, eighths});
    std::stable_sort(by_distance.begin(), by_distance.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (const specs::OffloadOption& named : wanted) names.push_back(to_string(named));
    for (const auto& [distance, option] : by_distance) {
      specs::Experiment changed = experiment;
      changed.search.*part = {option};
      const auto best = best_of(changed);
      if (!best) continue;
      return add(remedies, fmt::format("{} {} instead of {}", key, to_string(option), fmt::join(names, ", ")),
                 fmt::format("search.{}={}", key, to_string(option)), best);
    }
  };
  try_part("offload_optimizer", &specs::SearchSpec::offload_optimizer);
  try_part("offload_parameters", &specs::SearchSpec::offload_parameters);
  try_part("offload_activations", &specs::SearchSpec::offload_activations);
}

/// The smallest devices of the same generation that have more memory and let something fit.
void try_larger_devices(const specs::Experiment& experiment, std::vector<Remedy>& remedies) {
  const specs::NodeSpec& node = experiment.cluster.groups.front().node;
  std::optional<std::pair<specs::NodeSpec, PricedCandidate>> smallest;
  for (const std::string& name : specs::catalog_names(specs::CatalogKind::node)) {
    const specs::Result<specs::NodeSpec> other = specs::catalog_node(name);
    if (!other || other->devices != node.devices || other->device.generation != node.device.generation)
      continue;
    if (other->device.memory_bytes <= node.device.memory_bytes) continue;
    if (smallest && other->device.memory_bytes >= smallest->first.device.memory_bytes) continue;
    specs::Experiment changed = experiment;
    changed.cluster.groups.front().node = *other;
    if (const auto best = best_of(changed)) smallest.emplace(*other, *best);
  }
  if (smallest)
    add(remedies,
        fmt::format("{} nodes ({} a device)", smallest->first.name,
                    format_bytes(static_cast<double>(smallest->first.device.memory_bytes))),
        "cluster.node=" + smallest->first.name, smallest->second);
}

void try_other_stacks(const specs::Experiment& experiment, std::vector<Remedy>& remedies) {
  for (const std::string& name : specs::catalog_names(specs::CatalogKind::stack)) {
    if (name == experiment.training.stack) continue;
    specs::Experiment changed = experiment;
    changed.training.stack = name;
    changed.training.stack_release.clear();
    add(remedies, fmt::format("the software stack \"{}\"", name), "training.stack=" + name, best_of(changed));
  }
}

}  // namespace

std::vector<Remedy> remedies_for(const specs::Experiment& experiment) {
  std::vector<Remedy> remedies;
  try_other_shares(experiment, remedies);
  try_without_restrictions(experiment, remedies);
  if (!is_mixed(experiment.cluster)) {
    try_more_nodes(experiment, remedies);
    try_larger_devices(experiment, remedies);
  }
  try_other_stacks(experiment, remedies);
  return remedies;
}

}  // namespace planner
