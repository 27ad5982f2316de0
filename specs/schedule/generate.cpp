#include "specs/schedule/generate.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <utility>

#include <fmt/format.h>

namespace specs {

std::int64_t generator_version(ScheduleKind) { return 1; }

StageLayout layout_of(ScheduleKind kind) {
  const bool there_and_back = kind == ScheduleKind::zero_bubble_v || kind == ScheduleKind::dual_pipe_v;
  return there_and_back ? StageLayout::v_shape : StageLayout::round_robin;
}

namespace {

std::string virtual_stages_refusal(ScheduleKind kind, std::int64_t virtual_stages) {
  switch (kind) {
    case ScheduleKind::interleaved:
      if (virtual_stages >= 2) return {};
      return fmt::format("schedule interleaved needs virtual_stages ≥ 2, not {}", virtual_stages);
    case ScheduleKind::zero_bubble_v:
    case ScheduleKind::dual_pipe_v:
      if (virtual_stages == 2) return {};
      return fmt::format("schedule {} needs virtual_stages = 2, not {}", name_of(kind), virtual_stages);
    default:
      if (virtual_stages == 1) return {};
      return fmt::format("schedule {} needs virtual_stages = 1, not {}", name_of(kind), virtual_stages);
  }
}

}  // namespace

std::string schedule_refusal(ScheduleKind kind, std::int64_t pipeline_ranks, std::int64_t virtual_stages,
                             std::int64_t micro_batches, std::int64_t group) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (pipeline_ranks < 1 || pipeline_ranks > most)
    return fmt::format("pipeline ranks {} is not in [1, {}]", pipeline_ranks, most);
  if (micro_batches < 1 || micro_batches > most)
    return fmt::format("micro-batches {} is not in [1, {}]", micro_batches, most);
  if (std::string refusal = virtual_stages_refusal(kind, virtual_stages); !refusal.empty()) return refusal;
  if (virtual_stages > most / pipeline_ranks)
    return fmt::format("pipeline ranks {} × virtual_stages {} is above {} stages", pipeline_ranks,
                       virtual_stages, most);
  if (kind != ScheduleKind::interleaved && group != 0)
    return fmt::format("micro_batch_group {} belongs to schedule interleaved; {} needs 0", group,
                       name_of(kind));
  if (group != 0 && (group < pipeline_ranks || group > most))
    return fmt::format("micro_batch_group {} must be 0 or in [{}, {}], at least the pipeline ranks", group,
                       pipeline_ranks, most);
  if (kind == ScheduleKind::dual_pipe_v && micro_batches < 2 * pipeline_ranks)
    return fmt::format("schedule dualpipe-v needs micro-batches ≥ 2 × pipeline ranks {} = {}, not {}",
                       pipeline_ranks, 2 * pipeline_ranks, micro_batches);
  return {};
}

namespace {

/// Appends actions in order, for each (kind, chunk) with the next micro-batch; what lies beyond the last
/// micro-batch is left out, so that a pattern made for a full pipeline serves a short one.
class RankBuilder {
 public:
  RankBuilder(const Schedule& schedule, std::int32_t rank) : micro_batches_(schedule.micro_batches) {
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      if (schedule.rank_of_stage(stage) == rank) stages_.push_back(stage);
    next_.resize(stages_.size());
  }

  void forward(std::size_t chunk = 0) { append(ActionKind::forward, chunk, next_[chunk].forward++); }
  void backward(std::size_t chunk = 0, bool with_previous = false) {
    append(ActionKind::backward, chunk, next_[chunk].backward++, with_previous);
    ++next_[chunk].weight;
  }
  void input_gradient(std::size_t chunk = 0) {
    append(ActionKind::input_gradient, chunk, next_[chunk].backward++);
  }
  void weight_gradient(std::size_t chunk = 0) {
    append(ActionKind::weight_gradient, chunk, next_[chunk].weight++);
  }
  /// Input gradients whose weight gradient still waits.
  std::int32_t waiting(std::size_t chunk = 0) const { return next_[chunk].backward - next_[chunk].weight; }
  std::int32_t forwards(std::size_t chunk = 0) const { return next_[chunk].forward; }
  std::int32_t backwards(std::size_t chunk = 0) const { return next_[chunk].backward; }

  void append(ActionKind kind, std::size_t chunk, std::int32_t micro_batch, bool with_previous = false) {
    if (micro_batch < micro_batches_)
      actions_.push_back({kind, stages_.at(chunk), micro_batch, with_previous});
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  struct Next {
    std::int32_t forward = 0;
    std::int32_t backward = 0;
    std::int32_t weight = 0;
  };
  std::int32_t micro_batches_;
  std::vector<std::int32_t> stages_;
  std::vector<Next> next_;
  std::vector<Action> actions_;
};

void build_gpipe(const Schedule& schedule, std::int32_t, RankBuilder& builder) {
  for (std::int32_t index = 0; index < schedule.micro_batches; ++index) builder.forward();
  for (std::int32_t index = 0; index < schedule.micro_batches; ++index) builder.backward();
}

void build_1f1b(const Schedule& schedule, std::int32_t rank, RankBuilder& builder) {
  const std::int32_t warm_up = std::min(schedule.pipeline_ranks - 1 - rank, schedule.micro_batches);
  for (std::int32_t index = 0; index < warm_up; ++index) builder.forward();
  for (std::int32_t index = warm_up; index < schedule.micro_batches; ++index) {
    builder.forward();
    builder.backward();
  }
  for (std::int32_t index = 0; index < warm_up; ++index) builder.backward();
}

/// The order in which a rank's chunks meet the micro-batches: a group passes chunk after chunk before the
/// next group starts. Where the group size does not divide the micro-batches, groups are made as equal as
/// they go and no smaller, the larger ones first: a small last group would wait for itself to come round.
struct InterleavedOrder {
  struct Slot {
    std::size_t chunk = 0;
    std::int32_t micro_batch = 0;
  };
  std::vector<Slot> slots;
  std::int32_t largest_group = 0;

  explicit InterleavedOrder(const Schedule& schedule) {
    const std::int32_t asked =
        schedule.micro_batch_group == 0 ? schedule.pipeline_ranks : schedule.micro_batch_group;
    const std::int32_t groups = std::max(1, schedule.micro_batches / asked);
    largest_group = (schedule.micro_batches + groups - 1) / groups;
    std::int32_t base = 0;
    for (std::int32_t group = 0; group < groups; ++group) {
      const std::int32_t size =
          schedule.micro_batches / groups + (group < schedule.micro_batches % groups ? 1 : 0);
      for (std::int32_t chunk = 0; chunk < schedule.virtual_stages; ++chunk)
        for (std::int32_t index = 0; index < size; ++index)
          slots.push_back({static_cast<std::size_t>(chunk), base + index});
      base += size;
    }
  }
};

void build_interleaved(const Schedule& schedule, std::int32_t rank, RankBuilder& builder) {
  const InterleavedOrder order(schedule);
  const auto total = static_cast<std::int32_t>(order.slots.size());
  const std::int32_t warm_up = std::min(
      2 * (schedule.pipeline_ranks - rank - 1) + (schedule.virtual_stages - 1) * order.largest_group, total);
  const auto forward = [&](std::int32_t index) {
    const InterleavedOrder::Slot slot = order.slots[static_cast<std::size_t>(index)];
    builder.append(ActionKind::forward, slot.chunk, slot.micro_batch);
  };
  const auto backward = [&](std::int32_t index) {
    const InterleavedOrder::Slot slot = order.slots[static_cast<std::size_t>(index)];
    const auto chunks = static_cast<std::size_t>(schedule.virtual_stages);
    builder.append(ActionKind::backward, chunks - 1 - slot.chunk, slot.micro_batch);
  };
  for (std::int32_t index = 0; index < warm_up; ++index) forward(index);
  for (std::int32_t index = warm_up; index < total; ++index) {
    forward(index);
    backward(index - warm_up);
  }
  for (std::int32_t index = total - warm_up; index < total; ++index) backward(index);
}

/// Both zero-bubble schedules of one chunk: 1F1B with `warm_up` forwards ahead, whose weight gradients stay
/// `delay` behind the input gradients and fill the end (Qi et al., "Zero Bubble Pipeline Parallelism", 2024).
void build_zero_bubble(const Schedule& schedule, std::int32_t warm_up, std::int32_t delay,
                       RankBuilder& builder) {
  warm_up = std::min(warm_up, schedule.micro_batches);
  for (std::int32_t index = 0; index < warm_up; ++index) builder.forward();
  while (builder.backwards() < schedule.micro_batches) {
    if (builder.forwards() < schedule.micro_batches) builder.forward();
    builder.input_gradient();
    if (builder.waiting() > delay) builder.weight_gradient();
  }
  while (builder.waiting() > 0) builder.weight_gradient();
}

/// ZB-V (same paper, section 6): chunk 0 goes down the ranks, chunk 1 comes back; each rank keeps as many
/// activations as the first rank of 1F1B.
void build_zero_bubble_v(const Schedule& schedule, std::int32_t rank, RankBuilder& builder) {
  const std::int32_t ranks = schedule.pipeline_ranks;
  const std::int32_t full = std::max(2 * ranks - 1, schedule.micro_batches);
  const auto backward = [&](std::size_t chunk) {
    builder.input_gradient(chunk);
    builder.weight_gradient(chunk);
  };
  for (std::int32_t count = 2 * (ranks - rank) - 1; count > 0; --count) builder.forward(0);
  for (std::int32_t count = rank; count > 0; --count) {
    builder.forward(1);
    builder.forward(0);
  }
  for (std::int32_t count = ranks - rank; count > 0; --count) {
    builder.forward(1);
    backward(1);
  }
  while (builder.forwards(1) < builder.forwards(0) || builder.forwards(0) < full) {
    if (builder.forwards(0) < full) builder.forward(0);
    backward(0);
    builder.forward(1);
    backward(1);
  }
  for (std::int32_t count = rank; count > 0; --count) {
    builder.input_gradient(0);
    builder.input_gradient(1);
  }
  for (std::int32_t count = ranks - rank; count > 0; --count) {
    builder.input_gradient(0);
    builder.weight_gradient(0);
  }
  while (builder.waiting(1) > 0) builder.weight_gradient(1);
  while (builder.waiting(0) > 0) builder.weight_gradient(0);
}

/// DualPipe in its V form ("cut in half"; DeepSeek-V3 technical report, section 3.2.1, with the two
/// directions folded onto the two chunks of a rank). A forward of one micro-batch stands beside the backward
/// of another, so that the communication of one hides behind the other.
void build_dual_pipe_v(const Schedule& schedule, std::int32_t rank, RankBuilder& builder) {
  const std::int32_t after = schedule.pipeline_ranks - 1 - rank;
  const std::int32_t before = rank + 1;
  const auto repeat = [](std::int32_t count, const auto& body) {
    for (std::int32_t index = 0; index < count; ++index) body(index);
  };
  std::deque<std::size_t> waiting;  // chunks whose weight gradients wait, oldest first
  const auto input_gradient = [&](std::size_t chunk) {
    builder.input_gradient(chunk);
    waiting.push_back(chunk);
  };
  const auto oldest_weight_gradient = [&] {
    builder.weight_gradient(waiting.front());
    waiting.pop_front();
  };
  const auto forward_and_backward = [&](std::size_t forward_chunk, std::size_t backward_chunk) {
    builder.forward(forward_chunk);
    builder.backward(backward_chunk, true);
  };

  repeat(2 * after, [&](std::int32_t) { builder.forward(0); });
  repeat(before, [&](std::int32_t) {
    builder.forward(0);
    builder.forward(1);
  });
  repeat(after, [&](std::int32_t) {
    input_gradient(1);
    oldest_weight_gradient();
    builder.forward(1);
  });
  repeat(schedule.micro_batches - 2 * schedule.pipeline_ranks + before, [&](std::int32_t) {
    forward_and_backward(0, 1);
    forward_and_backward(1, 0);
  });
  repeat(after, [&](std::int32_t) {
    builder.backward(1);
    forward_and_backward(1, 0);
  });
  // From the middle on weight gradients are put off: what follows waits for input gradients alone.
  const std::int32_t middle = before / 2;
  const bool odd = rank % 2 == 1;
  repeat(before, [&](std::int32_t index) {
    const bool put_off_1 = index > middle || (index == middle && odd);
    const bool put_off_0 = index >= middle;
    put_off_1 ? input_gradient(1) : builder.backward(1);
    put_off_0 ? input_gradient(0) : builder.backward(0);
  });
  repeat(after, [&](std::int32_t) {
    oldest_weight_gradient();
    input_gradient(0);
  });
  while (!waiting.empty()) oldest_weight_gradient();
}

}  // namespace

Schedule generate_schedule(ScheduleKind kind, std::int32_t pipeline_ranks, std::int32_t virtual_stages,
                           std::int32_t micro_batches, std::int32_t group) {
  assert(schedule_refusal(kind, pipeline_ranks, virtual_stages, micro_batches, group).empty());
  Schedule schedule{.kind = kind,
                    .layout = layout_of(kind),
                    .pipeline_ranks = pipeline_ranks,
                    .virtual_stages = virtual_stages,
                    .micro_batches = micro_batches,
                    .micro_batch_group = group,
                    .rank_actions = {}};
  for (std::int32_t rank = 0; rank < pipeline_ranks; ++rank) {
    RankBuilder builder(schedule, rank);
    switch (kind) {
      case ScheduleKind::gpipe:
        build_gpipe(schedule, rank, builder);
        break;
      case ScheduleKind::one_forward_one_backward:
        build_1f1b(schedule, rank, builder);
        break;
      case ScheduleKind::interleaved:
        build_interleaved(schedule, rank, builder);
        break;
      case ScheduleKind::zero_bubble_h1:
        build_zero_bubble(schedule, pipeline_ranks - 1 - rank, rank, builder);
        break;
      case ScheduleKind::zero_bubble_h2:
        build_zero_bubble(schedule, 2 * (pipeline_ranks - 1 - rank), 2 * rank, builder);
        break;
      case ScheduleKind::zero_bubble_v:
        build_zero_bubble_v(schedule, rank, builder);
        break;
      case ScheduleKind::dual_pipe_v:
        build_dual_pipe_v(schedule, rank, builder);
        break;
    }
    schedule.rank_actions.push_back(builder.take());
  }
  return schedule;
}

}  // namespace specs
