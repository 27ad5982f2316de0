#include "specs/schedule/lowering.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace specs {
namespace {

constexpr std::int64_t not_yet = std::numeric_limits<std::int64_t>::max();

std::int64_t duration_of(ActionKind kind) { return kind == ActionKind::backward ? 2 : 1; }

bool is_gradient(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::input_gradient;
}

/// Runs the compute actions once in unit times and writes each rank's list as it goes.
class Lowering {
 public:
  Lowering(const Schedule& compute, const LoweringOptions& options)
      : compute_(compute),
        options_(options),
        ranks_(static_cast<std::size_t>(compute.pipeline_ranks)),
        activation_ready_(table()),
        gradient_ready_(table()),
        gradients_left_(static_cast<std::size_t>(compute.stages())) {
    lowered_ = compute;
    for (std::vector<Action>& actions : lowered_.rank_actions) actions.clear();
    for (const std::vector<Action>& actions : compute.rank_actions)
      for (const Action& action : actions)
        if (ends_gradient(action.kind)) ++gradients_left_[index_of(action.stage)];
    const std::size_t last = index_of(compute.stages() - 1);
    for (std::size_t mb = 0; mb < static_cast<std::size_t>(compute.micro_batches); ++mb) {
      activation_ready_[0][mb] = true;
      gradient_ready_[last][mb] = true;
    }
  }

  Schedule run() {
    std::int64_t now = 0;
    while (true) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        if (ranks_[rank].busy_until == now) finish(rank);
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) start(rank, now);
      now = not_yet;
      for (const Rank& rank : ranks_) now = std::min(now, rank.busy_until);
      if (now == not_yet) break;
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      assert(ranks_[rank].next == compute_.rank_actions[rank].size() &&
             "compute actions cannot run in this order");
    return std::move(lowered_);
  }

 private:
  struct Rank {
    std::size_t next = 0;
    std::int64_t busy_until = not_yet;  ///< not_yet: idle
  };
  using Table = std::vector<std::vector<bool>>;

  static std::size_t index_of(std::int32_t index) { return static_cast<std::size_t>(index); }
  Table table() const {
    return Table(index_of(compute_.stages()), std::vector<bool>(index_of(compute_.micro_batches)));
  }
  /// Whether nothing of the (stage, micro-batch)'s weight gradient is missing after such an action.
  static bool ends_gradient(ActionKind kind) {
    return kind == ActionKind::backward || kind == ActionKind::weight_gradient;
  }
  /// On the rank that holds `stage`.
  void emit_for(std::int32_t stage, const Action& action) {
    lowered_.rank_actions[index_of(compute_.rank_of_stage(stage))].push_back(action);
  }
  void emit(std::int32_t stage, ActionKind kind, std::int32_t micro_batch) {
    emit_for(stage, {kind, stage, micro_batch});
  }
  bool reshards_into(std::int32_t stage) const {
    return std::find(options_.reshard_before.begin(), options_.reshard_before.end(), stage) !=
           options_.reshard_before.end();
  }

  bool ready(const Action& action) const {
    if (action.kind == ActionKind::forward)
      return activation_ready_[index_of(action.stage)][index_of(action.micro_batch)];
    if (is_gradient(action.kind))
      return gradient_ready_[index_of(action.stage)][index_of(action.micro_batch)];
    return true;
  }

  /// Actions that the next one starts together with, itself included.
  std::size_t together(std::size_t rank) const {
    const std::vector<Action>& actions = compute_.rank_actions[rank];
    const std::size_t next = ranks_[rank].next;
    return next + 1 < actions.size() && actions[next + 1].with_previous ? 2 : 1;
  }

  void start(std::size_t rank, std::int64_t now) {
    Rank& state = ranks_[rank];
    const std::vector<Action>& actions = compute_.rank_actions[rank];
    if (state.busy_until != not_yet || state.next == actions.size()) return;
    const auto first = actions.begin() + static_cast<std::ptrdiff_t>(state.next);
    const auto end = first + static_cast<std::ptrdiff_t>(together(rank));
    if (!std::all_of(first, end, [&](const Action& action) { return ready(action); })) return;
    for (auto action = first; action != end; ++action)
      if (uses_parameters(action->kind))
        emit(action->stage, ActionKind::gather_parameters, action->micro_batch);
    state.busy_until = now;
    for (auto action = first; action != end; ++action) {
      lowered_.rank_actions[rank].push_back(*action);
      state.busy_until += duration_of(action->kind);
    }
  }

  bool uses_parameters(ActionKind kind) const {
    return options_.zero_stage >= 3 && (kind == ActionKind::forward || is_gradient(kind));
  }

  void finish(std::size_t rank) {
    Rank& state = ranks_[rank];
    const std::size_t end = state.next + together(rank);
    for (; state.next < end; ++state.next) finish(compute_.rank_actions[rank][state.next]);
    state.busy_until = not_yet;
  }

  void finish(const Action& action) {
    if (uses_parameters(action.kind)) emit(action.stage, ActionKind::release_parameters, action.micro_batch);
    if (action.kind == ActionKind::forward && action.stage + 1 < compute_.stages())
      hand_over(action, action.stage + 1, reshards_into(action.stage + 1), activation_ways,
                activation_ready_);
    if (is_gradient(action.kind) && action.stage > 0)
      hand_over(action, action.stage - 1, reshards_into(action.stage), gradient_ways, gradient_ready_);
    if (!ends_gradient(action.kind)) return;
    const bool complete = --gradients_left_[index_of(action.stage)] == 0;
    if (options_.zero_stage >= 2 && !(complete && is_tied(action.stage)))
      emit(action.stage, ActionKind::reduce_gradients, action.micro_batch);
    if (complete) finish_stage(action);
  }

  /// The actions that carry a tensor to another stage.
  struct Ways {
    ActionKind send;
    ActionKind receive;
    ActionKind reshard;
  };
  static constexpr Ways activation_ways{ActionKind::send_activation, ActionKind::receive_activation,
                                        ActionKind::reshard_activation};
  static constexpr Ways gradient_ways{ActionKind::send_gradient, ActionKind::receive_gradient,
                                      ActionKind::reshard_gradient};

  void hand_over(const Action& action, std::int32_t to, bool reshard, const Ways& ways, Table& ready) {
    const bool crosses = compute_.rank_of_stage(action.stage) != compute_.rank_of_stage(to);
    if (reshard) {
      if (crosses) emit_for(action.stage, {ways.reshard, to, action.micro_batch});
      emit(to, ways.reshard, action.micro_batch);
    } else if (crosses) {
      emit(action.stage, ways.send, action.micro_batch);
      emit(to, ways.receive, action.micro_batch);
    }
    ready[index_of(to)][index_of(action.micro_batch)] = true;
  }

  /// Stages whose table copies are summed before they are reduced.
  bool is_tied(std::int32_t stage) const {
    const std::int32_t last = compute_.stages() - 1;
    return options_.tied_embeddings && compute_.rank_of_stage(0) != compute_.rank_of_stage(last) &&
           (stage == 0 || stage == last);
  }

  void finish_stage(const Action& action) {
    // With ZeRO 2 every micro-batch is reduced for itself; what is left is the last one of a tied stage.
    const std::int32_t of = options_.zero_stage >= 2 ? action.micro_batch : -1;
    if (!is_tied(action.stage)) {
      if (options_.zero_stage < 2) emit(action.stage, ActionKind::reduce_gradients, -1);
      return;
    }
    tied_waiting_.push_back({ActionKind::reduce_gradients, action.stage, of});
    if (tied_waiting_.size() < 2) return;
    for (const Action& reduction : tied_waiting_) emit(reduction.stage, ActionKind::reduce_tied, -1);
    for (const Action& reduction : tied_waiting_)
      emit(reduction.stage, reduction.kind, reduction.micro_batch);
  }

  const Schedule& compute_;
  const LoweringOptions& options_;
  Schedule lowered_;
  std::vector<Rank> ranks_;
  Table activation_ready_;
  Table gradient_ready_;
  std::vector<std::int32_t> gradients_left_;
  std::vector<Action> tied_waiting_;
};

}  // namespace

Schedule lower(const Schedule& compute_only, const LoweringOptions& options) {
  return Lowering(compute_only, options).run();
}

}  // namespace specs
