// Puts a schedule's compute actions into the order of a ScheduleOrder.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cost_models/schedule_path.h"
#include "specs/schedule/schedule.h"

namespace cost_models {

/// Runs the schedule once, taking an action from each rank in turn where what it needs was made before the
/// turn began: the actions of a turn need nothing of each other, and a processor can time several at once.
class ScheduleOrderBuilder {
 public:
  explicit ScheduleOrderBuilder(const specs::Schedule& schedule)
      : schedule_(&schedule),
        stride_(static_cast<std::size_t>(schedule.micro_batches)),
        next_(schedule.rank_actions.size()),
        slots_(static_cast<std::size_t>(2 * schedule.stages()) * stride_) {}

  /// The order of `whole`, beside `shorter` where there is one, in rounds of `round` micro-batches.
  static void build(const specs::Schedule& whole, const specs::Schedule* shorter, std::int32_t round,
                    ScheduleOrder& order);

 private:
  using Positions = std::vector<std::size_t>;
  using Actions = std::vector<ScheduleOrder::TimedAction>;

  ScheduleOrderBuilder begin_both(const specs::Schedule& shorter, std::int32_t round, ScheduleOrder& order);
  bool follow_tensors(const std::vector<std::uint32_t>& before, std::int32_t round,
                      ScheduleOrder& order) const;
  /// As far as `limits` of each rank let it.
  void run(const Positions& limits, Actions& actions);
  void run_to_the_end(Actions& actions);
  bool take(std::size_t rank, std::size_t limit, Actions& actions);
  void append(std::size_t rank, const specs::Action& action, bool with_next, Actions& actions);
  std::size_t tensor(bool gradient, std::int32_t stage, std::int32_t micro_batch) const;
  bool enters(const specs::Action& action) const;
  bool ready(const specs::Action& action) const;
  ScheduleOrder::Product product(std::size_t rank, const specs::Action& action);
  std::uint32_t new_slot();

  const specs::Schedule* schedule_;
  std::size_t stride_;  ///< micro-batches of the longer of two schedules, of which this is one
  Positions next_;
  std::uint32_t slot_count_ = 1;
  std::uint32_t link_count_ = 1;
  std::vector<std::uint32_t> slots_;                         ///< by tensor; 0: not there (yet)
  std::vector<std::pair<std::size_t, std::uint32_t>> made_;  ///< in this turn: tensor and slot
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> freed_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> links_;
};

}  // namespace cost_models
