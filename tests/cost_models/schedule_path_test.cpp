// The array that times a schedule, against the rules themselves: every action starts when its rank is free
// and its tensor has arrived over a link that carries one message at a time.
#include "cost_models/schedule_path.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "specs/schedule/generate.h"

namespace cost_models {
namespace {

using specs::Action;
using specs::ActionKind;
using specs::ScheduleKind;

class PlainPath {
 public:
  PlainPath(const specs::Schedule& schedule, const PipelineLoad& load) : schedule_(schedule), load_(load) {}

  double seconds() {
    const std::size_t ranks = schedule_.rank_actions.size();
    std::vector<std::size_t> next(ranks);
    free_.assign(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        while (run(rank, next[rank])) moved = true;
    }
    double last = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(next[rank], schedule_.rank_actions[rank].size());
      last = std::max(last, free_[rank] + load_.after[rank]);
    }
    return last;
  }

 private:
  using Tensor = std::tuple<bool, std::int32_t, std::int32_t>;  ///< gradient?, of stage, micro-batch

  std::optional<double> arrival(const Action& action) const {
    const bool gradient = action.kind != ActionKind::forward;
    const std::int32_t first = gradient ? schedule_.stages() - 1 : 0;
    if (action.kind == ActionKind::weight_gradient || action.stage == first) return 0;
    const auto found = arrived_.find({gradient, action.stage, action.micro_batch});
    if (found == arrived_.end()) return std::nullopt;
    return found->second;
  }

  double duration(const Action& action) const {
    const StageSeconds& stage = load_.stages[static_cast<std::size_t>(action.stage)];
    if (action.kind == ActionKind::forward) return stage.forward;
    if (action.kind == ActionKind::backward) return stage.backward;
    return action.kind == ActionKind::input_gradient ? stage.input_gradient() : stage.weight_gradient;
  }

  bool run(std::size_t rank, std::size_t& next) {
    const std::vector<Action>& list = schedule_.rank_actions[rank];
    if (next == list.size()) return false;
    const std::size_t end = next + (next + 1 < list.size() && list[next + 1].with_previous ? 2 : 1);
    double start = free_[rank], work = 0;
    for (std::size_t i = next; i < end; ++i) {
      const auto ready = arrival(list[i]);
      if (!ready) return false;
      start = std::max(start, *ready);
      work += duration(list[i]);
    }
    free_[rank] = start + work;
    for (; next < end; ++next) hand_over(list[next], rank);
    return true;
  }

  void hand_over(const Action& action, std::size_t rank) {
    if (action.kind == ActionKind::weight_gradient) return;
    const bool gradient = action.kind != ActionKind::forward;
    const std::int32_t to = action.stage + (gradient ? -1 : 1);
    if (to < 0 || to == schedule_.stages()) return;
    double end = free_[rank];
    if (const auto other = static_cast<std::size_t>(schedule_.rank_of_stage(to)); other != rank) {
      double& link = links_[{rank, other}];
      end = link =
          std::max(end, link) + load_.transfers[static_cast<std::size_t>(std::min(action.stage, to))];
    }
    arrived_[{gradient, to, action.micro_batch}] = end;
  }

  const specs::Schedule& schedule_;
  const PipelineLoad& load_;
  std::vector<double> free_;
  std::map<Tensor, double> arrived_;
  std::map<std::pair<std::size_t, std::size_t>, double> links_;
};

TEST(ScheduleOrder, TakesTheSecondsThatTheRulesGiveForEverySchedule) {
  std::mt19937 random(11);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  std::uniform_real_distribution<double> unit(0, 1);
  int checked = 0;
  while (checked < 400) {
    const auto& kinds = specs::EnumNames<ScheduleKind>::names;
    const ScheduleKind kind =
        kinds[static_cast<std::size_t>(between(0, static_cast<int>(kinds.size()) - 1))].first;
    const std::int32_t ranks = between(2, 9), chunks = between(1, 4), micro_batches = between(1, 40);
    if (!specs::schedule_refusal(kind, ranks, chunks, micro_batches, 0).empty()) continue;
    ++checked;
    std::vector<StageSeconds> stages(static_cast<std::size_t>(ranks * chunks));
    for (StageSeconds& stage : stages) {
      stage = {1 + unit(random), 2 + unit(random), 0};
      stage.weight_gradient = stage.backward / 2;
    }
    std::vector<double> transfers(stages.size() - 1);
    const double slow = checked % 2 == 0 ? 2 : 0.1;
    for (double& transfer : transfers) transfer = slow * unit(random);
    std::vector<double> after(static_cast<std::size_t>(ranks));
    for (double& end : after) end = unit(random);
    const PipelineLoad load{stages, transfers, after};
    const specs::Schedule schedule = specs::generate_schedule(kind, ranks, chunks, micro_batches, 0);
    const double expected = PlainPath(schedule, load).seconds();
    EXPECT_NEAR(ScheduleOrder(kind, ranks, chunks, micro_batches).seconds(load).whole, expected,
                1e-12 * expected)
        << name_of(kind) << " p " << ranks << " v " << chunks << " m " << micro_batches;
  }
}

/// Stages between which nothing differs repeat at once; unlike ones may not within the shorter schedule.
std::vector<StageSeconds> stages_of(std::size_t count, double unlike, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<StageSeconds> stages(count);
  for (StageSeconds& stage : stages) {
    stage = {1 + unlike * unit(random), 2 + unlike * unit(random), 0};
    stage.weight_gradient = stage.backward / 2;
  }
  return stages;
}

TEST(ScheduleOrder, BesideAShorterOneTakesTheSecondsOfBothWithAndWithoutTransfers) {
  std::mt19937 random(12);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  std::uniform_real_distribution<double> unit(0, 1);
  for (int checked = 0; checked < 600;) {
    const auto& kinds = specs::EnumNames<ScheduleKind>::names;
    const ScheduleKind kind =
        kinds[static_cast<std::size_t>(between(0, static_cast<int>(kinds.size()) - 1))].first;
    const std::int32_t ranks = between(2, 9), chunks = between(1, 4), rest = between(0, ranks - 1);
    std::int32_t first_rounds = 3;
    if (kind == ScheduleKind::interleaved) first_rounds = std::max(first_rounds, rest);
    const std::int32_t shorter = first_rounds * ranks + rest, whole = shorter + between(1, 5) * ranks;
    if (!specs::schedule_refusal(kind, ranks, chunks, shorter, 0).empty()) continue;
    const std::vector<StageSeconds> stages =
        stages_of(static_cast<std::size_t>(ranks * chunks), std::array{0.0, 0.02, 1.0}[checked % 3], random);
    std::vector<double> transfers(stages.size() - 1, unit(random) * (checked % 2 == 0 ? 1 : 0.02));
    if (checked % 5 == 0)
      for (double& transfer : transfers) transfer = unit(random);
    const std::vector<double> none(transfers.size()), after(static_cast<std::size_t>(ranks), unit(random));
    ++checked;
    const PipelineLoad load{stages, transfers, after}, without{stages, none, after};
    const ScheduleOrder order(kind, ranks, chunks, whole, 0, shorter, ranks);
    const PathSeconds alone = order.seconds(load);
    const std::array<PathSeconds, 2> both = order.seconds_without_transfers_too(load);
    const auto expect = [&](std::int32_t micro_batches, const PipelineLoad& given, double seconds) {
      const specs::Schedule schedule = specs::generate_schedule(kind, ranks, chunks, micro_batches, 0);
      const double expected = PlainPath(schedule, given).seconds();
      EXPECT_NEAR(seconds, expected, 1e-12 * expected)
          << name_of(kind) << " p " << ranks << " v " << chunks << " m " << micro_batches;
    };
    expect(whole, load, alone.whole);
    expect(shorter, load, alone.shorter);
    expect(whole, load, both[0].whole);
    expect(shorter, load, both[0].shorter);
    expect(whole, without, both[1].whole);
    expect(shorter, without, both[1].shorter);
  }
}

}  // namespace
}  // namespace cost_models
