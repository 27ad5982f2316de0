// The critical path of a schedule's compute actions: each starts when its rank is free and what it needs has
// arrived. A transfer occupies the directed link between two ranks, one after the other; both ranks go on
// computing meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "specs/schedule/schedule.h"

namespace cost_models {

/// Of one micro-batch on one stage.
struct StageSeconds {
  double forward = 0;          ///< gathers included
  double backward = 0;         ///< the same, with recomputation
  double weight_gradient = 0;  ///< the part of `backward` that may wait
  double total() const { return forward + backward; }
  double input_gradient() const { return backward - weight_gradient; }
};

/// What the ranks of a pipeline have to do.
struct PipelineLoad {
  std::span<const StageSeconds> stages;  ///< in the order the data flows
  std::span<const double> transfers;     ///< one way, over the boundary after each stage but the last
  std::span<const double> after;         ///< of each rank, after its last action
};

/// Of a schedule and of the shorter one that begins like it.
struct PathSeconds {
  double shorter = 0;
  double whole = 0;
};

/// A schedule's actions in one order in which each stands after what it waits for: its path is then a single
/// pass over an array.
///
/// Beside a shorter schedule of the same kind, whole rounds of micro-batches fewer, what both begin with is
/// run once; and where its last round did to every rank, link and tensor on its way the same as the round
/// before, but later, all further rounds do, and the rest of the longer one need not be run: it ends as the
/// shorter one does, so many rounds later. That is told by comparing the two states, and holds since what an
/// action's end follows from is sums and maxima alone.
class ScheduleOrder {
 public:
  /// Requires an empty `specs::schedule_refusal`. `shorter`: micro-batches of the other, 0 for none; `round`:
  /// of one round.
  ScheduleOrder(specs::ScheduleKind kind, std::int32_t ranks, std::int32_t virtual_stages,
                std::int32_t micro_batches, std::int32_t group = 0, std::int32_t shorter = 0,
                std::int32_t round = 0);

  /// Seconds from the first start until the last rank is done, what comes after its last action
  /// included. A boundary inside a rank costs nothing.
  PathSeconds seconds(const PipelineLoad& load) const;
  /// The same, and what it would be were there no transfers; the last is a pass over both at once.
  std::array<PathSeconds, 2> seconds_without_transfers_too(const PipelineLoad& load) const;

  /// Actions that are kept.
  std::size_t size() const { return beginning_.size() + shorter_end_.size() + whole_end_.size(); }

 private:
  /// What comes out of an action and goes to another: where it arrives, and over which link.
  struct Product {
    std::uint32_t slot = 0;      ///< of `arrivals`; 0 where nothing comes out
    std::uint32_t link = 0;      ///< 0: stays on the rank
    std::uint32_t boundary = 0;  ///< of `transfers`
  };
  struct TimedAction {
    std::uint32_t rank = 0;
    std::uint32_t duration = 0;  ///< of `durations`
    std::uint32_t needed = 0;    ///< slot of what it waits for; 0 where nothing
    Product product;
    bool with_next = false;  ///< starts when the next may, too, and ends with it
  };
  /// When each rank is free, each link is, each slot was filled.
  template <class Time>
  struct State;
  template <class Time>
  class Run;
  friend class ScheduleOrderBuilder;

  bool repeats() const { return rounds_apart_ > 0; }

  std::int32_t ranks_ = 1;
  std::uint32_t slots_ = 1;
  std::uint32_t links_ = 1;
  std::vector<TimedAction> beginning_;  ///< of both
  std::vector<TimedAction> shorter_end_;
  std::vector<TimedAction> whole_end_;
  std::size_t round_begin_ = 0;  ///< in `beginning_`, of its last round
  double rounds_apart_ = 0;      ///< 0 where the ranks do not do the same in each round
  /// Slots of the tensors on their way at `round_begin_`, and a round later, at the end of `beginning_`.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> on_their_way_;
};

/// Remembers orders, since those of a shape serve every placement that has it. Safe for several threads.
class ScheduleOrders {
 public:
  ScheduleOrders();
  ~ScheduleOrders();
  ScheduleOrders(ScheduleOrders&&) noexcept;
  ScheduleOrders& operator=(ScheduleOrders&&) noexcept;

  std::shared_ptr<const ScheduleOrder> get(specs::ScheduleKind kind, std::int32_t ranks,
                                           std::int32_t virtual_stages, std::int32_t micro_batches,
                                           std::int32_t group, std::int32_t shorter = 0,
                                           std::int32_t round = 0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cost_models
