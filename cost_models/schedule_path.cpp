#include "cost_models/schedule_path.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "cost_models/schedule_order_builder.h"
#include "specs/schedule/generate.h"

namespace cost_models {
namespace {

/// Of the path as it is and of the one without transfers.
struct TwoTimes {
  double with = 0;
  double without = 0;
  TwoTimes& operator+=(const TwoTimes& other) {
    with += other.with;
    without += other.without;
    return *this;
  }
};
TwoTimes operator+(TwoTimes a, const TwoTimes& b) { return a += b; }
TwoTimes later(const TwoTimes& a, const TwoTimes& b) {
  return {std::max(a.with, b.with), std::max(a.without, b.without)};
}
double later(double a, double b) { return std::max(a, b); }

/// In place of a transfer's seconds.
void travel(double seconds, double& time) { time += seconds; }
void travel(double seconds, TwoTimes& time) { time.with += seconds; }

/// A round moved everything by `shift`: to rounding, which sums of thousands of terms leave.
bool moved_by(double before, double now, double shift) {
  constexpr double rounding = 1e-13;
  return std::abs(now - before - shift) <= rounding * now;
}
bool moved_by(const TwoTimes& before, const TwoTimes& now, const TwoTimes& shift) {
  return moved_by(before.with, now.with, shift.with) && moved_by(before.without, now.without, shift.without);
}
double difference(double a, double b) { return a - b; }
TwoTimes difference(const TwoTimes& a, const TwoTimes& b) { return {a.with - b.with, a.without - b.without}; }
void add(double seconds, double& time) { time += seconds; }
void add(double seconds, TwoTimes& time) { time += {seconds, seconds}; }
double times(double count, double shift) { return count * shift; }
TwoTimes times(double count, const TwoTimes& shift) { return {count * shift.with, count * shift.without}; }

}  // namespace

/// One pass over the actions, with its scratch: durations, then when each rank is free, each link is, each
/// slot was filled.
template <class Time>
class ScheduleOrder::Run {
 public:
  Run(const ScheduleOrder& order, const PipelineLoad& load)
      : order_(order), load_(load), durations_(4 * load.stages.size()), times_(state_size()) {
    for (std::size_t stage = 0; stage < load.stages.size(); ++stage) {
      const StageSeconds& seconds = load.stages[stage];
      durations_[4 * stage] = seconds.forward;
      durations_[4 * stage + 1] = seconds.input_gradient();
      durations_[4 * stage + 2] = seconds.weight_gradient;
      durations_[4 * stage + 3] = seconds.backward;
    }
  }

  /// Of the shorter schedule, and of the whole one.
  std::pair<Time, Time> ends() {
    const std::span<const TimedAction> beginning(order_.beginning_);
    Time shorter{};
    if (!order_.shorter_end_.empty()) {
      std::vector<Time> before;
      if (order_.repeats()) {
        pass(beginning.first(order_.round_begin_));
        before = times_;
      }
      pass(beginning.subspan(order_.round_begin_));
      const std::vector<Time> fork = times_;
      pass(order_.shorter_end_);
      shorter = last();
      if (order_.repeats()) {
        const Time shift = difference(fork.front(), before.front());
        if (repeated(before, fork, shift)) return {shorter, shorter + times(order_.rounds_apart_, shift)};
      }
      times_ = fork;
    }
    pass(order_.whole_end_);
    return {shorter, last()};
  }

 private:
  std::size_t state_size() const {
    return static_cast<std::size_t>(order_.ranks_) + order_.links_ + order_.slots_;
  }

  void deliver(const Product& product, Time end) {
    if (product.slot == 0) return;
    Time* const link_free = times_.data() + order_.ranks_;
    if (product.link != 0) {
      Time& link = link_free[product.link];
      link = later(end, link);
      travel(load_.transfers[product.boundary], link);
      end = link;
    }
    link_free[order_.links_ + product.slot] = end;
  }

  void pass(std::span<const TimedAction> actions) {
    const Time* const arrivals = times_.data() + order_.ranks_ + order_.links_;
    for (std::size_t index = 0; index < actions.size(); ++index) {
      const TimedAction& action = actions[index];
      Time& now = times_[action.rank];
      Time start = later(now, arrivals[action.needed]);
      if (action.with_next) {
        const TimedAction& other = actions[++index];
        start = later(start, arrivals[other.needed]);
        add(durations_[action.duration], start);
        add(durations_[other.duration], start);
        now = start;
        deliver(action.product, start);
        deliver(other.product, start);
      } else {
        add(durations_[action.duration], start);
        now = start;
        deliver(action.product, start);
      }
    }
  }

  bool repeated(const std::vector<Time>& before, const std::vector<Time>& now, const Time& shift) const {
    const auto alike = [&](std::size_t then, std::size_t later_on) {
      return moved_by(before[then], now[later_on], shift);
    };
    const auto ranks = static_cast<std::size_t>(order_.ranks_);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!alike(rank, rank)) return false;
    for (std::size_t link = ranks + 1; link < ranks + order_.links_; ++link)
      if (!alike(link, link)) return false;
    const std::size_t slots = ranks + order_.links_;
    for (const auto& [then, later_on] : order_.on_their_way_)
      if (!alike(slots + then, slots + later_on)) return false;
    return true;
  }

  Time last() const {
    Time last{};
    for (std::size_t rank = 0; rank < load_.after.size(); ++rank) {
      Time done = times_[rank];
      add(load_.after[rank], done);
      last = later(last, done);
    }
    return last;
  }

  const ScheduleOrder& order_;
  const PipelineLoad& load_;
  std::vector<double> durations_;
  std::vector<Time> times_;
};

ScheduleOrder::ScheduleOrder(specs::ScheduleKind kind, std::int32_t ranks, std::int32_t virtual_stages,
                             std::int32_t micro_batches, std::int32_t group, std::int32_t shorter,
                             std::int32_t round) {
  const specs::Schedule whole = specs::generate_schedule(kind, ranks, virtual_stages, micro_batches, group);
  if (shorter == 0) {
    ScheduleOrderBuilder::build(whole, nullptr, 0, *this);
    return;
  }
  const specs::Schedule other = specs::generate_schedule(kind, ranks, virtual_stages, shorter, group);
  ScheduleOrderBuilder::build(whole, &other, round, *this);
}

PathSeconds ScheduleOrder::seconds(const PipelineLoad& load) const {
  const auto [shorter, whole] = Run<double>(*this, load).ends();
  return {shorter, whole};
}

std::array<PathSeconds, 2> ScheduleOrder::seconds_without_transfers_too(const PipelineLoad& load) const {
  const auto [shorter, whole] = Run<TwoTimes>(*this, load).ends();
  return {PathSeconds{shorter.with, whole.with}, PathSeconds{shorter.without, whole.without}};
}

struct ScheduleOrders::State {
  using Key =
      std::tuple<specs::ScheduleKind, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
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
                                                         std::int32_t micro_batches, std::int32_t group,
                                                         std::int32_t shorter, std::int32_t round) const {
  const State::Key key{kind, ranks, virtual_stages, micro_batches, group, shorter};
  {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->orders.find(key);
    if (found != state_->orders.end()) return found->second;
  }
  const auto order = std::make_shared<const ScheduleOrder>(kind, ranks, virtual_stages, micro_batches, group,
                                                           shorter, round);
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
