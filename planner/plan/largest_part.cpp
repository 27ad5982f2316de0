#include "planner/plan/largest_part.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/group_layouts.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

constexpr int most_tried = 4096;

/// Idle nodes of each group, and the devices on them.
struct Idle {
  std::int64_t devices = 0;
  std::vector<std::int64_t> nodes;
  auto operator<=>(const Idle&) const = default;
};

specs::Experiment without(const specs::Experiment& experiment, const Idle& idle) {
  specs::Experiment part = experiment;
  for (std::size_t group = 0; group < idle.nodes.size(); ++group)
    part.cluster.groups[group].nodes -= idle.nodes[group];
  return part;
}

std::string words_of(const Idle& idle, const specs::ClusterSpec& cluster) {
  std::vector<std::string> words;
  for (std::size_t group = 0; group < idle.nodes.size(); ++group)
    if (idle.nodes[group] > 0)
      words.push_back(fmt::format("{} of {} {}", format_count(idle.nodes[group]),
                                  format_count(cluster.groups[group].nodes),
                                  cluster.groups[group].node.name));
  return fmt::format("{}", fmt::join(words, " and "));
}

}  // namespace

std::optional<ClusterPart> largest_legal_part(const specs::Experiment& experiment,
                                              const specs::StackSpec& stack) {
  const std::vector<specs::ClusterGroup>& groups = experiment.cluster.groups;
  if (!is_mixed(experiment.cluster)) return std::nullopt;
  // Parts by the devices that they leave, each once: a part is followed by those with one node less.
  std::set<Idle> waiting{{0, std::vector<std::int64_t>(groups.size(), 0)}};
  for (int tried = 0; tried < most_tried && !waiting.empty(); ++tried) {
    const Idle idle = waiting.extract(waiting.begin()).value();
    const specs::Experiment part = without(experiment, idle);
    if (!Space(part, stack).meshes().empty()) return ClusterPart{part, words_of(idle, experiment.cluster)};
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (idle.nodes[group] + 1 >= groups[group].nodes) continue;
      Idle more = idle;
      ++more.nodes[group];
      more.devices += groups[group].node.devices;
      waiting.insert(std::move(more));
    }
  }
  return std::nullopt;
}

}  // namespace planner
