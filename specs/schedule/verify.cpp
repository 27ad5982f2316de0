#include "specs/schedule/verify.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "specs/schedule/in_flight.h"
#include "specs/schedule/verify_communication.h"

namespace specs {
namespace {

bool is_compute(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
      return true;
    default:
      return false;
  }
}

bool may_be_of_whole_stage(ActionKind kind) {
  switch (kind) {
    case ActionKind::gather_parameters:
    case ActionKind::release_parameters:
    case ActionKind::reduce_gradients:
    case ActionKind::reduce_tied:
      return true;
    default:
      return false;
  }
}

/// The ranks on which an action may stand: that of its stage, for a reshard also that of the stage it comes
/// from.
bool may_stand_on(const Schedule& schedule, const Action& action, std::int32_t rank) {
  if (schedule.rank_of_stage(action.stage) == rank) return true;
  std::int32_t from = -1;
  if (action.kind == ActionKind::reshard_activation) from = action.stage - 1;
  if (action.kind == ActionKind::reshard_gradient) from = action.stage + 1;
  return from >= 0 && from < schedule.stages() && schedule.rank_of_stage(from) == rank;
}

/// Two actions that run together are a forward and a gradient, of different micro-batches or stages.
bool may_run_together(const std::vector<Action>& actions, std::size_t index) {
  if (index == 0 || actions[index - 1].with_previous) return false;
  const auto is_forward = [](const Action& action) { return action.kind == ActionKind::forward; };
  const auto is_gradient = [](const Action& action) {
    return action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
  };
  const Action& before = actions[index - 1];
  const Action& action = actions[index];
  return (is_forward(before) && is_gradient(action)) || (is_gradient(before) && is_forward(action));
}

/// Shape of the schedule, and that each action stands on the rank that holds its stage.
std::optional<Violation> check_ranges(const Schedule& schedule) {
  if (schedule.pipeline_ranks < 1 || schedule.virtual_stages < 1 || schedule.micro_batches < 1 ||
      static_cast<std::int64_t>(schedule.rank_actions.size()) != schedule.pipeline_ranks)
    return Violation{
        0, 0,
        fmt::format("{} lists of actions for {} pipeline ranks, {} virtual stages, {} micro-batches",
                    schedule.rank_actions.size(), schedule.pipeline_ranks, schedule.virtual_stages,
                    schedule.micro_batches)};
  for (std::size_t rank = 0; rank < schedule.rank_actions.size(); ++rank)
    for (std::size_t index = 0; index < schedule.rank_actions[rank].size(); ++index) {
      const Action& action = schedule.rank_actions[rank][index];
      if (action.stage < 0 || action.stage >= schedule.stages())
        return Violation{rank, index, fmt::format("the schedule has stages 0 to {}", schedule.stages() - 1)};
      if (action.with_previous && !may_run_together(schedule.rank_actions[rank], index))
        return Violation{rank, index, "runs together with something that is not its counterpart"};
      if (!may_stand_on(schedule, action, static_cast<std::int32_t>(rank)))
        return Violation{rank, index,
                         fmt::format("stage {} is on pipeline rank {}", action.stage,
                                     schedule.rank_of_stage(action.stage))};
      const bool whole_stage = action.micro_batch == -1 && may_be_of_whole_stage(action.kind);
      if (!whole_stage && (action.micro_batch < 0 || action.micro_batch >= schedule.micro_batches))
        return Violation{rank, index,
                         fmt::format("the schedule has micro-batches 0 to {}", schedule.micro_batches - 1)};
    }
  return std::nullopt;
}

/// What happened to one (stage, micro-batch) so far.
struct Progress {
  bool forward = false;
  bool backward = false;
  bool input_gradient = false;
  bool weight_gradient = false;
  bool complete() const { return forward && (backward || (input_gradient && weight_gradient)); }
};

using ProgressTable = std::vector<std::vector<Progress>>;

/// The rule that the action breaks, or empty.
std::string advance(Progress& progress, ActionKind kind) {
  const bool any_backward = progress.backward || progress.input_gradient;
  switch (kind) {
    case ActionKind::forward:
      if (progress.forward) return "a second forward";
      progress.forward = true;
      return {};
    case ActionKind::backward:
    case ActionKind::input_gradient:
      if (!progress.forward) return "a gradient before the forward";
      if (any_backward) return "a second input gradient";
      (kind == ActionKind::backward ? progress.backward : progress.input_gradient) = true;
      return {};
    case ActionKind::weight_gradient:
      if (progress.backward) return "a weight gradient beside a whole backward";
      if (!progress.input_gradient) return "a weight gradient before the input gradient";
      if (progress.weight_gradient) return "a second weight gradient";
      progress.weight_gradient = true;
      return {};
    default:
      return {};
  }
}

/// Each stage and micro-batch once forward and once backward, in that order on its rank.
std::optional<Violation> check_completeness(const Schedule& schedule) {
  ProgressTable table(static_cast<std::size_t>(schedule.stages()),
                      std::vector<Progress>(static_cast<std::size_t>(schedule.micro_batches)));
  for (std::size_t rank = 0; rank < schedule.rank_actions.size(); ++rank)
    for (std::size_t index = 0; index < schedule.rank_actions[rank].size(); ++index) {
      const Action& action = schedule.rank_actions[rank][index];
      if (!is_compute(action.kind)) continue;
      Progress& progress =
          table[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.micro_batch)];
      if (std::string broken = advance(progress, action.kind); !broken.empty())
        return Violation{rank, index, broken};
    }
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t micro_batch = 0; micro_batch < schedule.micro_batches; ++micro_batch) {
      const Progress& progress =
          table[static_cast<std::size_t>(stage)][static_cast<std::size_t>(micro_batch)];
      if (progress.complete()) continue;
      const auto rank = static_cast<std::size_t>(schedule.rank_of_stage(stage));
      const char* missing = !progress.forward                                ? "forward"
                            : !progress.backward && !progress.input_gradient ? "backward"
                                                                             : "weight gradient";
      return Violation{rank, schedule.rank_actions[rank].size(),
                       fmt::format("the list ends without the {} of stage {}, micro-batch {}", missing, stage,
                                   micro_batch)};
    }
  return std::nullopt;
}

/// Runs the compute actions of all ranks as far as they go; where no rank can go on, the order contradicts
/// the dependencies.
std::optional<Violation> check_dependencies(const Schedule& schedule) {
  ProgressTable done(static_cast<std::size_t>(schedule.stages()),
                     std::vector<Progress>(static_cast<std::size_t>(schedule.micro_batches)));
  const auto missing = [&](const Action& action) -> std::string {
    const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
    const auto stage = static_cast<std::size_t>(action.stage);
    if (action.kind == ActionKind::forward && stage > 0 && !done[stage - 1][micro_batch].forward)
      return fmt::format("waits for the forward of stage {}", stage - 1);
    const bool gradient = action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
    if (gradient && stage + 1 < done.size() && !done[stage + 1][micro_batch].backward &&
        !done[stage + 1][micro_batch].input_gradient)
      return fmt::format("waits for the gradient of stage {}", stage + 1);
    return {};
  };
  std::vector<std::size_t> next(schedule.rank_actions.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank)
      while (next[rank] < schedule.rank_actions[rank].size()) {
        const std::vector<Action>& actions = schedule.rank_actions[rank];
        const std::size_t begin = next[rank];
        const std::size_t end =
            begin + 1 < actions.size() && actions[begin + 1].with_previous ? begin + 2 : begin + 1;
        bool waits = false;
        for (std::size_t index = begin; index < end; ++index)
          waits = waits || (is_compute(actions[index].kind) && !missing(actions[index]).empty());
        if (waits) break;
        for (; next[rank] < end; ++next[rank]) {
          const Action& action = actions[next[rank]];
          if (is_compute(action.kind))
            advance(
                done[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.micro_batch)],
                action.kind);
        }
        moved = true;
      }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    if (next[rank] == actions.size()) continue;
    // The first of two that run together may be ready where the second is not.
    const std::size_t index = missing(actions[next[rank]]).empty() ? next[rank] + 1 : next[rank];
    return Violation{rank, index, missing(actions[index]) + ", which comes after it in every order"};
  }
  return std::nullopt;
}

std::optional<Violation> check_memory(const Schedule& schedule) {
  const std::vector<std::int64_t> peaks = count_peak_in_flight(schedule);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    const std::int64_t promised =
        peak_in_flight(schedule.kind, schedule.pipeline_ranks, schedule.virtual_stages,
                       schedule.micro_batches, static_cast<std::int64_t>(rank), schedule.micro_batch_group);
    if (peaks[rank] <= promised) continue;
    std::int64_t alive = 0;
    std::size_t index = 0;
    for (; alive <= promised; ++index) {
      const ActionKind kind = schedule.rank_actions[rank][index].kind;
      if (kind == ActionKind::forward) ++alive;
      if (kind == ActionKind::backward || kind == ActionKind::weight_gradient) --alive;
    }
    return Violation{rank, index - 1,
                     fmt::format("{} activations alive, schedule {} promises at most {}", promised + 1,
                                 name_of(schedule.kind), promised)};
  }
  return std::nullopt;
}

std::string describe(const Schedule& schedule, const Violation& violation) {
  const std::vector<Action>& actions =
      schedule.rank_actions.empty() ? std::vector<Action>() : schedule.rank_actions[violation.rank];
  if (violation.index >= actions.size())
    return fmt::format("pipeline rank {}: {}", violation.rank, violation.rule);
  const Action& action = actions[violation.index];
  const std::string micro_batch =
      action.micro_batch < 0 ? std::string() : fmt::format("{}", action.micro_batch);
  return fmt::format("pipeline rank {}, action {} ({}{} of stage {}): {}", violation.rank, violation.index,
                     name_of(action.kind), micro_batch, action.stage, violation.rule);
}

}  // namespace

Diagnostics verify(const Schedule& schedule) {
  Diagnostics diagnostics;
  for (const auto rule :
       {check_ranges, check_completeness, check_dependencies, check_memory, check_communication}) {
    const std::optional<Violation> violation = rule(schedule);
    if (!violation) continue;
    diagnostics.error({}, describe(schedule, *violation));
    break;
  }
  return diagnostics;
}

std::vector<std::int64_t> count_peak_in_flight(const Schedule& schedule) {
  std::vector<std::int64_t> peaks;
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    std::int64_t alive = 0;
    std::int64_t peak = 0;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::forward) peak = std::max(peak, ++alive);
      if (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient) --alive;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace specs
