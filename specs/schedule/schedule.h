// A pipeline schedule as data: for each pipeline rank an ordered list of actions on (stage, micro-batch).
//
// A generator emits compute actions only; the lowering places communication; the verifier proves the result
// without sharing code with either; the simulator times it; the runtime's one executor runs it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "specs/diagnostics/enum_names.h"

namespace specs {

enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_forward_one_backward,
  interleaved,
  zero_bubble_h1,
  zero_bubble_h2,
  zero_bubble_v,
  dual_pipe_v,  ///< DualPipe cut in half: two chunks in V shape, forward and backward overlapped
};

template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::array<std::pair<ScheduleKind, std::string_view>, 7> names{{
      {ScheduleKind::gpipe, "gpipe"},
      {ScheduleKind::one_forward_one_backward, "1f1b"},
      {ScheduleKind::interleaved, "interleaved"},
      {ScheduleKind::zero_bubble_h1, "zb-h1"},
      {ScheduleKind::zero_bubble_h2, "zb-h2"},
      {ScheduleKind::zero_bubble_v, "zb-v"},
      {ScheduleKind::dual_pipe_v, "dualpipe-v"},
  }};
};

enum class ActionKind : std::uint8_t {
  forward,
  backward,         ///< input and weight gradient in one
  input_gradient,   ///< zero-bubble: the part on the critical path
  weight_gradient,  ///< zero-bubble: the part that may wait
  send_activation,  ///< to the rank that holds stage + 1
  receive_activation,
  send_gradient,  ///< to the rank that holds stage - 1
  receive_gradient,
  gather_parameters,   ///< ZeRO-3: make the stage's parameters whole
  release_parameters,  ///< ZeRO-3: drop what was gathered
  reduce_gradients,    ///< over the data axis, once the stage's gradients are complete
  reduce_tied,         ///< sum the gradient copies of a tied embedding over first and last stage
  reshard_activation,  ///< into a stage of another layout; on every rank of both stages, in place of SA/RA
  reshard_gradient,    ///< the way back, in place of SG/RG
};

/// The letters of the text form: F B I W, SA RA SG RG, GP RP, RD RT, XA XG.
template <>
struct EnumNames<ActionKind> {
  static constexpr std::array<std::pair<ActionKind, std::string_view>, 14> names{{
      {ActionKind::forward, "F"},
      {ActionKind::backward, "B"},
      {ActionKind::input_gradient, "I"},
      {ActionKind::weight_gradient, "W"},
      {ActionKind::send_activation, "SA"},
      {ActionKind::receive_activation, "RA"},
      {ActionKind::send_gradient, "SG"},
      {ActionKind::receive_gradient, "RG"},
      {ActionKind::gather_parameters, "GP"},
      {ActionKind::release_parameters, "RP"},
      {ActionKind::reduce_gradients, "RD"},
      {ActionKind::reduce_tied, "RT"},
      {ActionKind::reshard_activation, "XA"},
      {ActionKind::reshard_gradient, "XG"},
  }};
};

struct Action {
  ActionKind kind = ActionKind::forward;
  std::int32_t stage = 0;  ///< 0 … pipeline_ranks · virtual_stages − 1, in the order the data flows
  std::int32_t micro_batch = -1;  ///< −1 for actions on a whole stage (reduce, gather, release)
  bool with_previous = false;     ///< runs together with the action before it (DualPipe's overlapped F & B)
  bool operator==(const Action&) const = default;
};

/// Which pipeline rank holds a stage: round robin (interleaved), or there and back (the V shape of zb-v).
enum class StageLayout : std::uint8_t { round_robin, v_shape };

template <>
struct EnumNames<StageLayout> {
  static constexpr std::array<std::pair<StageLayout, std::string_view>, 2> names{{
      {StageLayout::round_robin, "round-robin"},
      {StageLayout::v_shape, "v-shape"},
  }};
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::one_forward_one_backward;
  StageLayout layout = StageLayout::round_robin;
  std::int32_t pipeline_ranks = 1;
  std::int32_t virtual_stages = 1;  ///< stages a pipeline rank holds
  std::int32_t micro_batches = 1;   ///< of one replica in one step
  std::int32_t micro_batch_group =
      0;  ///< interleaved: micro-batches that go round together, at least; 0: pipeline ranks
  std::vector<std::vector<Action>> rank_actions;

  std::int32_t stages() const { return pipeline_ranks * virtual_stages; }
  std::int32_t rank_of_stage(std::int32_t stage) const;
  bool operator==(const Schedule&) const = default;
};

}  // namespace specs
