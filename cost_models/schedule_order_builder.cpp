#include "cost_models/schedule_order_builder.h"

#include <algorithm>
#include <cassert>

namespace cost_models {

using specs::Action;
using specs::ActionKind;
using specs::Schedule;

namespace {

bool gradient(const Action& action) { return action.kind != ActionKind::forward; }

std::uint32_t kind_index(ActionKind kind) {
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

/// How many of the first actions of each rank the two have alike, no pair of actions cut.
std::vector<std::size_t> common_beginning(const Schedule& whole, const Schedule& shorter) {
  std::vector<std::size_t> common;
  for (std::size_t rank = 0; rank < whole.rank_actions.size(); ++rank) {
    const std::vector<Action>& list = whole.rank_actions[rank];
    const std::vector<Action>& other = shorter.rank_actions[rank];
    const auto [end, unlike] = std::mismatch(list.begin(), list.end(), other.begin(), other.end());
    auto count = static_cast<std::size_t>(end - list.begin());
    const auto joined = [count](const std::vector<Action>& actions) {
      return count < actions.size() && actions[count].with_previous;
    };
    if (count > 0 && (joined(list) || joined(other))) --count;
    common.push_back(count);
  }
  return common;
}

Action later(Action action, std::int32_t micro_batches) {
  action.micro_batch += micro_batches;
  return action;
}

/// Whether the whole schedule goes on from `forks` with the round before it, `rounds` times, and ends as the
/// shorter one does from there.
bool goes_on_in_rounds(const Schedule& whole, const Schedule& shorter, const std::vector<std::size_t>& begins,
                       const std::vector<std::size_t>& forks, std::int32_t rounds, std::int32_t round) {
  for (std::size_t rank = 0; rank < forks.size(); ++rank) {
    const std::vector<Action>& list = whole.rank_actions[rank];
    const std::vector<Action>& other = shorter.rank_actions[rank];
    const std::size_t each = forks[rank] - begins[rank], repeated = each * static_cast<std::size_t>(rounds);
    if (list.size() != other.size() + repeated) return false;
    for (std::size_t at = forks[rank]; at < list.size(); ++at) {
      const bool repeats = at < forks[rank] + repeated;
      const Action expected =
          repeats ? later(list[at - each], round) : later(other[at - repeated], rounds * round);
      if (!(list[at] == expected)) return false;
    }
  }
  return true;
}

}  // namespace

void ScheduleOrderBuilder::build(const Schedule& whole, const Schedule* shorter, std::int32_t round,
                                 ScheduleOrder& order) {
  order.ranks_ = whole.pipeline_ranks;
  ScheduleOrderBuilder builder(whole);
  if (shorter != nullptr) {
    ScheduleOrderBuilder other = builder.begin_both(*shorter, round, order);
    other.run_to_the_end(order.shorter_end_);
    order.slots_ = other.slot_count_;
    order.links_ = other.link_count_;
  }
  builder.run_to_the_end(order.whole_end_);
  order.slots_ = std::max(order.slots_, builder.slot_count_);
  order.links_ = std::max(order.links_, builder.link_count_);
}

/// Runs what the two begin with; returns the builder that goes on with the shorter one.
ScheduleOrderBuilder ScheduleOrderBuilder::begin_both(const Schedule& shorter, std::int32_t round,
                                                      ScheduleOrder& order) {
  const std::int32_t rounds = (schedule_->micro_batches - shorter.micro_batches) / round;
  const Positions forks = common_beginning(*schedule_, shorter);
  Positions begins = forks;
  bool repeats = rounds > 0;
  for (std::size_t rank = 0; rank < forks.size() && repeats; ++rank) {
    const std::size_t more = schedule_->rank_actions[rank].size() - shorter.rank_actions[rank].size();
    const std::size_t each = more / static_cast<std::size_t>(rounds);
    repeats = each <= forks[rank];
    if (repeats) begins[rank] -= each;
  }
  repeats = repeats && goes_on_in_rounds(*schedule_, shorter, begins, forks, rounds, round);
  if (repeats) {
    run(begins, order.beginning_);
    repeats = next_ == begins;
    order.round_begin_ = order.beginning_.size();
  }
  const std::vector<std::uint32_t> before = slots_;
  // What needs something that only one of them makes is left to the ends.
  run(forks, order.beginning_);
  if (repeats && next_ == forks && follow_tensors(before, round, order))
    order.rounds_apart_ = rounds;
  else
    order.round_begin_ = 0;
  ScheduleOrderBuilder other = *this;
  other.schedule_ = &shorter;
  return other;
}

/// Where the tensors that were on their way are a round later; false where others are.
bool ScheduleOrderBuilder::follow_tensors(const std::vector<std::uint32_t>& before, std::int32_t round,
                                          ScheduleOrder& order) const {
  const auto shift = static_cast<std::size_t>(round);
  for (std::size_t tensor = 0; tensor < before.size(); ++tensor) {
    if (before[tensor] == 0) continue;
    if (tensor % stride_ + shift >= stride_ || slots_[tensor + shift] == 0) return false;
    order.on_their_way_.emplace_back(before[tensor], slots_[tensor + shift]);
  }
  const auto there = slots_.size() - static_cast<std::size_t>(std::count(slots_.begin(), slots_.end(), 0U));
  return there == order.on_their_way_.size();
}

void ScheduleOrderBuilder::run(const Positions& limits, Actions& actions) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < next_.size(); ++rank)
      moved = take(rank, limits[rank], actions) || moved;
    for (const auto& [tensor, filled] : made_) slots_[tensor] = filled;
    made_.clear();
  }
}

void ScheduleOrderBuilder::run_to_the_end(Actions& actions) {
  Positions ends;
  for (const std::vector<Action>& list : schedule_->rank_actions) ends.push_back(list.size());
  run(ends, actions);
  assert(next_ == ends && "compute actions cannot run in this order");
}

bool ScheduleOrderBuilder::take(std::size_t rank, std::size_t limit, Actions& actions) {
  const std::vector<Action>& list = schedule_->rank_actions[rank];
  std::size_t& next = next_[rank];
  if (next == limit || !ready(list[next])) return false;
  const bool pair = next + 1 < list.size() && list[next + 1].with_previous;
  if (pair && (next + 1 == limit || !ready(list[next + 1]))) return false;
  append(rank, list[next], pair, actions);
  if (pair) append(rank, list[next + 1], false, actions);
  next += pair ? 2 : 1;
  return true;
}

/// Of the tensor that enters a stage, or that a stage makes for itself (the loss), in `slots_`.
std::size_t ScheduleOrderBuilder::tensor(bool gradient, std::int32_t stage, std::int32_t micro_batch) const {
  const auto row = static_cast<std::size_t>(gradient ? schedule_->stages() + stage : stage);
  return row * stride_ + static_cast<std::size_t>(micro_batch);
}

bool ScheduleOrderBuilder::enters(const Action& action) const {
  if (action.kind == ActionKind::weight_gradient) return false;
  return gradient(action) ? action.stage + 1 < schedule_->stages() : action.stage > 0;
}

bool ScheduleOrderBuilder::ready(const Action& action) const {
  return !enters(action) || slots_[tensor(gradient(action), action.stage, action.micro_batch)] != 0;
}

void ScheduleOrderBuilder::append(std::size_t rank, const Action& action, bool with_next, Actions& actions) {
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
  actions.push_back(timed);
  // A slot is free for others once the action that reads it has run; of a pair, once both have.
  if (!with_next) {
    free_.insert(free_.end(), freed_.begin(), freed_.end());
    freed_.clear();
  }
}

ScheduleOrder::Product ScheduleOrderBuilder::product(std::size_t rank, const Action& action) {
  if (action.kind == ActionKind::weight_gradient) return {};
  const std::int32_t to = gradient(action) ? action.stage - 1 : action.stage + 1;
  if (to < 0 || to >= schedule_->stages()) return {};
  ScheduleOrder::Product made;
  made.slot = new_slot();
  made_.emplace_back(tensor(gradient(action), to, action.micro_batch), made.slot);
  made.boundary = static_cast<std::uint32_t>(std::min(action.stage, to));
  const auto to_rank = static_cast<std::size_t>(schedule_->rank_of_stage(to));
  if (to_rank != rank) {
    const auto [entry, first] = links_.try_emplace({rank, to_rank}, link_count_);
    if (first) ++link_count_;
    made.link = entry->second;
  }
  return made;
}

std::uint32_t ScheduleOrderBuilder::new_slot() {
  if (free_.empty()) return slot_count_++;
  const std::uint32_t taken = free_.back();
  free_.pop_back();
  return taken;
}

}  // namespace cost_models
