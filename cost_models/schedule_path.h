// The critical path of a schedule's compute actions: each starts when its rank is free and what it needs has
// arrived. A transfer occupies the directed link between two ranks, one after the other; both ranks go on
// computing meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

/// A schedule's actions in one order in which each stands after what it waits for: its path is then a single
/// pass over an array.
class ScheduleOrder {
 public:
  /// Requires an empty `specs::schedule_refusal`.
  ScheduleOrder(specs::ScheduleKind kind, std::int32_t ranks, std::int32_t virtual_stages,
                std::int32_t micro_batches, std::int32_t group = 0);

  /// Seconds from the first start until the last rank is done, what comes after its last action
  /// included. A boundary inside a rank costs nothing.
  double seconds(const PipelineLoad& load) const;

  std::size_t size() const { return actions_.size(); }

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
  friend class ScheduleOrderBuilder;

  std::int32_t ranks_ = 1;
  std::uint32_t slots_ = 1;
  std::uint32_t links_ = 1;
  std::vector<TimedAction> actions_;
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
                                           std::int32_t group) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cost_models
