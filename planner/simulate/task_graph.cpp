#include "planner/simulate/task_graph.h"

#include <map>
#include <optional>
#include <utility>

namespace planner {
namespace {

using specs::Action;
using specs::ActionKind;
using Vertex = boost::graph_traits<TaskGraph>::vertex_descriptor;

class GraphBuilder {
 public:
  GraphBuilder(const specs::Schedule& schedule, const ScheduleDurations& seconds)
      : schedule_(schedule),
        seconds_(seconds),
        compute_(schedule.rank_actions.size()),
        gathers_(schedule.rank_actions.size()),
        reductions_(schedule.rank_actions.size()) {}

  TaskGraph build() {
    // Vertices first, rank by rank; what waits for another rank is joined when all are there.
    for (std::int32_t rank = 0; rank < schedule_.pipeline_ranks; ++rank)
      for (const Action& action : schedule_.rank_actions[index(rank)]) add(rank, action);
    for (const Wait& wait : waits_) boost::add_edge(arrived_.at(wait.tensor), wait.user, graph_);
    return std::move(graph_);
  }

 private:
  static std::size_t index(std::int32_t value) { return static_cast<std::size_t>(value); }

  /// A tensor on its way into a stage, or made by it.
  struct Tensor {
    bool gradient;
    std::int32_t stage;
    std::int32_t micro_batch;
    auto operator<=>(const Tensor&) const = default;
  };

  struct Wait {
    Vertex user;
    Tensor tensor;
  };

  Vertex new_task(std::int32_t rank, const Action& action, double task_seconds, std::int32_t to_rank = -1) {
    return boost::add_vertex(Task{action, rank, to_rank, task_seconds}, graph_);
  }

  /// The next task of a stream: after the last one there.
  void append(std::optional<Vertex>& stream, Vertex task) {
    if (stream) boost::add_edge(*stream, task, graph_);
    stream = task;
  }

  void add(std::int32_t rank, const Action& action) {
    const StageDurations& stage = seconds_.stages[index(action.stage)];
    switch (action.kind) {
      case ActionKind::forward:
        return add_compute(rank, action, stage.forward);
      case ActionKind::backward:
        return add_compute(rank, action, stage.input_gradient + stage.weight_gradient);
      case ActionKind::input_gradient:
        return add_compute(rank, action, stage.input_gradient);
      case ActionKind::weight_gradient:
        return add_compute(rank, action, stage.weight_gradient);
      case ActionKind::send_activation:
        return add_transfer(rank, action, {false, action.stage + 1, action.micro_batch});
      case ActionKind::send_gradient:
        return add_transfer(rank, action, {true, action.stage - 1, action.micro_batch});
      case ActionKind::reshard_activation:
        // Stands on both ranks; the sender's is the transfer.
        if (schedule_.rank_of_stage(action.stage - 1) == rank)
          add_transfer(rank, action, {false, action.stage, action.micro_batch});
        return;
      case ActionKind::reshard_gradient:
        if (schedule_.rank_of_stage(action.stage + 1) == rank)
          add_transfer(rank, action, {true, action.stage, action.micro_batch});
        return;
      case ActionKind::receive_activation:
      case ActionKind::receive_gradient:
        return;  // posted; its user waits
      case ActionKind::gather_parameters:
        return add_gather(rank, action, stage.gather);
      case ActionKind::release_parameters:
        return;
      case ActionKind::reduce_gradients:
        return add_reduction(rank, action, stage.reduction);
      case ActionKind::reduce_tied:
        return add_reduction(rank, action, seconds_.tied_reduction);
    }
  }

  void add_compute(std::int32_t rank, const Action& action, double task_seconds) {
    const Vertex task = new_task(rank, action, task_seconds);
    const std::optional<Vertex> previous = compute_[index(rank)];
    append(compute_[index(rank)], task);
    if (const auto gathered = gathered_.find(action.stage); gathered != gathered_.end())
      boost::add_edge(gathered->second, task, graph_);
    before_last_[rank] = previous;
    if (action.kind == ActionKind::weight_gradient) return;
    const bool gradient = action.kind != ActionKind::forward;
    const std::int32_t from = gradient ? action.stage + 1 : action.stage - 1;
    const std::int32_t to = gradient ? action.stage - 1 : action.stage + 1;
    if (holds(from)) waits_.push_back({task, {gradient, action.stage, action.micro_batch}});
    make(rank, {gradient, action.stage, action.micro_batch}, to, task);
    if (!action.with_previous) return;
    // Two that run together start when both may and end when both have: the first waits for what the second
    // needs, and what it makes is there when the second is done.
    if (holds(from)) waits_.push_back({*previous, {gradient, action.stage, action.micro_batch}});
    const Action& first = graph_[*previous].action;
    const bool first_gradient = first.kind != ActionKind::forward;
    make(rank, {first_gradient, first.stage, first.micro_batch},
         first_gradient ? first.stage - 1 : first.stage + 1, task);
  }

  bool holds(std::int32_t stage) const { return stage >= 0 && stage < schedule_.stages(); }

  /// `task` makes the tensor; where the stage it goes to is on the same rank, that is all its user waits for.
  void make(std::int32_t rank, const Tensor& tensor, std::int32_t to, Vertex task) {
    made_[tensor] = task;
    if (holds(to) && schedule_.rank_of_stage(to) == rank)
      arrived_[{tensor.gradient, to, tensor.micro_batch}] = task;
  }

  void add_transfer(std::int32_t rank, const Action& action, const Tensor& into) {
    const std::int32_t from = into.gradient ? into.stage + 1 : into.stage - 1;
    const std::int32_t to_rank = schedule_.rank_of_stage(into.stage);
    const double task_seconds = into.gradient ? seconds_.gradient_transfer[index(into.stage)]
                                              : seconds_.activation_transfer[index(from)];
    const Vertex task = new_task(rank, action, task_seconds, to_rank);
    boost::add_edge(made_.at({into.gradient, from, into.micro_batch}), task, graph_);
    append(links_[{rank, to_rank}], task);
    arrived_[into] = task;
  }

  /// One gather runs ahead of the compute action that is running.
  void add_gather(std::int32_t rank, const Action& action, double task_seconds) {
    const Vertex task = new_task(rank, action, task_seconds);
    append(gathers_[index(rank)], task);
    if (const std::optional<Vertex> done = before_last_[rank]) boost::add_edge(*done, task, graph_);
    gathered_[action.stage] = task;
  }

  void add_reduction(std::int32_t rank, const Action& action, double task_seconds) {
    const Vertex task = new_task(rank, action, task_seconds);
    append(reductions_[index(rank)], task);
    if (const std::optional<Vertex> last = compute_[index(rank)]) boost::add_edge(*last, task, graph_);
    if (action.kind != ActionKind::reduce_tied) return;
    tied_.push_back(task);
    if (tied_.size() == 2) join_tied();
  }

  /// Both ends of a tied reduction start together: each after what the other waits for.
  void join_tied() {
    std::vector<std::pair<Vertex, Vertex>> edges;
    for (const auto& [one, other] : {std::pair(tied_[0], tied_[1]), std::pair(tied_[1], tied_[0])})
      for (auto [edge, end] = boost::in_edges(other, graph_); edge != end; ++edge)
        edges.emplace_back(boost::source(*edge, graph_), one);
    for (const auto& [source, task] : edges) boost::add_edge(source, task, graph_);
  }

  const specs::Schedule& schedule_;
  const ScheduleDurations& seconds_;
  TaskGraph graph_;
  std::vector<std::optional<Vertex>> compute_;
  std::vector<std::optional<Vertex>> gathers_;
  std::vector<std::optional<Vertex>> reductions_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::optional<Vertex>> links_;
  std::map<Tensor, Vertex> made_;
  std::map<Tensor, Vertex> arrived_;
  std::map<std::int32_t, Vertex> gathered_;
  std::map<std::int32_t, std::optional<Vertex>> before_last_;  ///< compute action before a rank's last
  std::vector<Wait> waits_;
  std::vector<Vertex> tied_;
};

}  // namespace

TaskGraph task_graph(const specs::Schedule& lowered, const ScheduleDurations& seconds) {
  return GraphBuilder(lowered, seconds).build();
}

}  // namespace planner
