#include "planner/simulate/simulate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <boost/graph/topological_sort.hpp>
#include <fmt/format.h>

namespace planner {
namespace {

using specs::ActionKind;
using Vertex = boost::graph_traits<TaskGraph>::vertex_descriptor;

}  // namespace

std::string_view action_words(specs::ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::input_gradient:
      return "input gradient";
    case ActionKind::weight_gradient:
      return "weight gradient";
    case ActionKind::send_activation:
    case ActionKind::receive_activation:
      return "activation transfer";
    case ActionKind::send_gradient:
    case ActionKind::receive_gradient:
      return "gradient transfer";
    case ActionKind::gather_parameters:
      return "parameter gather";
    case ActionKind::release_parameters:
      return "parameter release";
    case ActionKind::reduce_gradients:
      return "gradient reduction";
    case ActionKind::reduce_tied:
      return "reduction of the tied embedding";
    case ActionKind::reshard_activation:
    case ActionKind::reshard_gradient:
      return "reshard";
  }
  return "";
}

Simulation simulate(const specs::Schedule& lowered, const ScheduleDurations& seconds) {
  const TaskGraph graph = task_graph(lowered, seconds);
  Simulation simulation;
  simulation.tasks.resize(boost::num_vertices(graph));
  std::vector<std::optional<Vertex>> cause(simulation.tasks.size());
  std::vector<Vertex> order;
  order.reserve(simulation.tasks.size());
  boost::topological_sort(graph, std::back_inserter(order));
  std::reverse(order.begin(), order.end());
  std::optional<Vertex> last;
  for (const Vertex task : order) {
    TimedTask& timed = simulation.tasks[task];
    timed.task = graph[task];
    for (auto [edge, end] = boost::in_edges(task, graph); edge != end; ++edge) {
      const Vertex before = boost::source(*edge, graph);
      if (cause[task] && simulation.tasks[before].end_seconds <= timed.start_seconds) continue;
      timed.start_seconds = simulation.tasks[before].end_seconds;
      cause[task] = before;
    }
    timed.end_seconds = timed.start_seconds + timed.task.seconds;
    if (!last || timed.end_seconds > simulation.tasks[*last].end_seconds) last = task;
  }
  if (last) simulation.seconds = simulation.tasks[*last].end_seconds;
  for (std::optional<Vertex> task = last; task; task = cause[*task])
    simulation.critical_path.push_back(*task);
  std::reverse(simulation.critical_path.begin(), simulation.critical_path.end());
  return simulation;
}

std::vector<CriticalShare> critical_shares(const Simulation& simulation) {
  std::map<std::pair<std::int32_t, ActionKind>, double> by_part;
  for (const std::size_t index : simulation.critical_path) {
    const Task& task = simulation.tasks[index].task;
    by_part[{task.rank, task.action.kind}] += task.seconds;
  }
  std::vector<CriticalShare> shares;
  for (const auto& [part, part_seconds] : by_part)
    if (part_seconds > 0) shares.push_back({part.second, part.first, part_seconds});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const CriticalShare& a, const CriticalShare& b) { return a.seconds > b.seconds; });
  return shares;
}

std::string explain(const Simulation& simulation) {
  std::string text;
  for (const CriticalShare& share : critical_shares(simulation))
    text += fmt::format("{:.3f} s {:5.1f} %  {} on pipeline rank {}\n", share.seconds,
                        100 * share.seconds / simulation.seconds, action_words(share.kind), share.rank);
  return text;
}

}  // namespace planner
