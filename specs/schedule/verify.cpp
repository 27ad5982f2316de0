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
      if (schedule.rank_of_stage(action.stage) != static_cast<std::int32_t>(rank))
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
        const Action& action = schedule.rank_actions[rank][next[rank]];
        if (is_compute(action.kind)) {
          if (!missing(action).empty()) break;
          advance(done[static_cast<std::size_t>(action.stage)][static_cast<std::size_t>(action.micro_batch)],
                  action.kind);
        }
        ++next[rank];
        moved = true;
      }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank)
    if (next[rank] < schedule.rank_actions[rank].size())
      return Violation{
          rank, next[rank],
          missing(schedule.rank_actions[rank][next[rank]]) + ", which comes after it in every order"};
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
