#include "cost_models/schedule_path.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "specs/schedule/generate.h"

namespace cost_models {

using specs::Action;
using specs::ActionKind;

/// Runs the schedule once, taking an action from each rank in turn where what it needs was made before the
/// turn began: the actions of a turn need nothing of each other, and a processor can time several at once.
class ScheduleOrderBuilder {
 public:
  ScheduleOrderBuilder(const specs::Schedule& schedule, ScheduleOrder& order)
      : schedule_(schedule),
        order_(order),
        slots_(static_cast<std::size_t>(2 * schedule.stages()) *
               static_cast<std::size_t>(schedule.micro_batches)) {}

  void build() {
    order_.ranks_ = schedule_.pipeline_ranks;
    std::size_t actions = 0;
    for (const std::vector<Action>& list : schedule_.rank_actions) actions += list.size();
    order_.actions_.reserve(actions);
    std::vector<std::size_t> next(schedule_.rank_actions.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) moved = take(rank, next[rank]) || moved;
      for (const auto& [tensor, filled] : made_) slots_[tensor] = filled;
      made_.clear();
    }
    assert(order_.actions_.size() == actions && "compute actions cannot run in this order");
  }

 private:
  static bool gradient(const Action& action) { return action.kind != ActionKind::forward; }

  bool take(std::size_t rank, std::size_t& next) {
    const std::vector<Action>& list = schedule_.rank_actions[rank];
    if (next == list.size() || !ready(list[next])) return false;
    const bool pair = next + 1 < list.size() && list[next + 1].with_previous;
    if (pair && !ready(list[next + 1])) return false;
    append(rank, list[next], pair);
    if (pair) append(rank, list[next + 1], false);
    next += pair ? 2 : 1;
    return true;
  }

  /// Of the tensor that enters a stage, or that a stage makes for itself (the loss), in `slots_`.
  std::size_t tensor(bool gradient, std::int32_t stage, std::int32_t micro_batch) const {
    const auto row = static_cast<std::size_t>(gradient ? schedule_.stages() + stage : stage);
    return row * static_cast<std::size_t>(schedule_.micro_batches) + static_cast<std::size_t>(micro_batch);
  }
  bool enters(const Action& action) const {
    if (action.kind == ActionKind::weight_gradient) return false;
    return gradient(action) ? action.stage + 1 < schedule_.stages() : action.stage > 0;
  }
  bool ready(const Action& action) const {
    return !enters(action) || slots_[tensor(gradient(action), action.stage, action.micro_batch)] != 0;
  }

  void append(std::size_t rank, const Action& action, bool with_next) {
    ScheduleOrder::TimedAction timed;
    timed.rank = static_cast<std::uint32_t>(rank);
    timed.with_next = with_next;
    timed.duration = 4 * static_cast<std::uint32_t>(action.stage) + kind_index(action.kind);
    if (enters(action)) {
      std::uint32_t& needed = slots_[tensor(gradient(action), action.stage, action.micro_batch)];
      timed.needed = needed;
      freed_.push_back(needed);
      needed = 0;
    }
    timed.product = product(rank, action);
    order_.actions_.push_back(timed);
    // A slot is free for others once the action that reads it has run; of a pair, once both have.
    if (!with_next) {
      free_.insert(free_.end(), freed_.begin(), freed_.end());
      freed_.clear();
    }
  }

  ScheduleOrder::Product product(std::size_t rank, const Action& action) {
    if (action.kind == ActionKind::weight_gradient) return {};
    const std::int32_t to = gradient(action) ? action.stage - 1 : action.stage + 1;
    if (to < 0 || to >= schedule_.stages()) return {};
    ScheduleOrder::Product made;
    made.slot = new_slot();
    made_.emplace_back(tensor(gradient(action), to, action.micro_batch), made.slot);
    made.boundary = static_cast<std::uint32_t>(std::min(action.stage, to));
    const auto to_rank = static_cast<std::size_t>(schedule_.rank_of_stage(to));
    if (to_rank != rank) {
      const auto [entry, first] = links_.try_emplace({rank, to_rank}, order_.links_);
      if (first) ++order_.links_;
      made.link = entry->second;
    }
    return made;
  }

  std::uint32_t new_slot() {
    if (free_.empty()) return order_.slots_++;
    const std::uint32_t taken = free_.back();
    free_.pop_back();
    return taken;
  }

  static std::uint32_t kind_index(ActionKind kind) {
    switch (kind) {
      case ActionKind::forward:
        return 0;
      case ActionKind::input_gradient:
        return 1;
      case ActionKind::weight_gradient:
        return 2;
      default:
        return 3;
    }
  }

  const specs::Schedule& schedule_;
  ScheduleOrder& order_;
  std::vector<std::uint32_t> slots_;                         ///< by tensor; 0: not there (yet)
  std::vector<std::pair<std::size_t, std::uint32_t>> made_;  ///< in this turn: tensor and slot
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> freed_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> links_;
};

ScheduleOrder::ScheduleOrder(specs::ScheduleKind kind, std::int32_t ranks, std::int32_t virtual_stages,
                             std::int32_t micro_batches, std::int32_t group) {
  const specs::Schedule schedule =
      specs::generate_schedule(kind, ranks, virtual_stages, micro_batches, group);
  ScheduleOrderBuilder(schedule, *this).build();
}

double ScheduleOrder::seconds(const PipelineLoad& load) const {
  const std::span<const StageSeconds> stages = load.stages;
  // One allocation for all scratch: durations, then when each rank is free, each link is, each slot is
  // filled.
  std::vector<double> scratch(4 * stages.size() + static_cast<std::size_t>(ranks_) + links_ + slots_);
  double* const durations = scratch.data();
  double* const rank_free = durations + 4 * stages.size();
  double* const link_free = rank_free + ranks_;
  double* const arrivals = link_free + links_;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    durations[4 * stage] = stages[stage].forward;
    durations[4 * stage + 1] = stages[stage].input_gradient();
    durations[4 * stage + 2] = stages[stage].weight_gradient;
    durations[4 * stage + 3] = stages[stage].backward;
  }
  const auto deliver = [&](const Product& product, double end) {
    if (product.slot == 0) return;
    if (product.link != 0) {
      double& link = link_free[product.link];
      end = link = std::max(end, link) + load.transfers[product.boundary];
    }
    arrivals[product.slot] = end;
  };
  for (std::size_t index = 0; index < actions_.size(); ++index) {
    const TimedAction& action = actions_[index];
    double& now = rank_free[action.rank];
    double start = std::max(now, arrivals[action.needed]);
    if (action.with_next) {
      const TimedAction& other = actions_[++index];
      start = std::max(start, arrivals[other.needed]);
      now = start + durations[action.duration] + durations[other.duration];
      deliver(action.product, now);
      deliver(other.product, now);
    } else {
      now = start + durations[action.duration];
      deliver(action.product, now);
    }
  }
  double last = 0;
  for (std::size_t rank = 0; rank < load.after.size(); ++rank)
    last = std::max(last, rank_free[rank] + load.after[rank]);
  return last;
}

struct ScheduleOrders::State {
  using Key = std::tuple<specs::ScheduleKind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  std::shared_mutex mutex;
  std::map<Key, std::shared_ptr<const ScheduleOrder>> orders;
  std::size_t actions = 0;
};

ScheduleOrders::ScheduleOrders() : state_(std::make_unique<State>()) {}
ScheduleOrders::~ScheduleOrders() = default;
ScheduleOrders::ScheduleOrders(ScheduleOrders&&) noexcept = default;
ScheduleOrders& ScheduleOrders::operator=(ScheduleOrders&&) noexcept = default;

std::shared_ptr<const ScheduleOrder> ScheduleOrders::get(specs::ScheduleKind kind, std::int32_t ranks,
                                                         std::int32_t virtual_stages,
                                                         std::int32_t micro_batches,
                                                         std::int32_t group) const {
  const State::Key key{kind, ranks, virtual_stages, micro_batches, group};
  {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->orders.find(key);
    if (found != state_->orders.end()) return found->second;
  }
  const auto order = std::make_shared<const ScheduleOrder>(kind, ranks, virtual_stages, micro_batches, group);
  // 32 bytes an action: what is remembered stays below 64 MB.
  constexpr std::size_t most_actions = std::size_t{2} << 20;
  const std::unique_lock lock(state_->mutex);
  if (state_->actions + order->size() > most_actions) {
    state_->orders.clear();
    state_->actions = 0;
  }
  if (state_->orders.emplace(key, order).second) state_->actions += order->size();
  return order;
}

}  // namespace cost_models
