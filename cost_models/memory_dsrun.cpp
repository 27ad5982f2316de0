// This project's runtime: a rank's memory is followed through its part of the schedule
// (specs/schedule/holdings.h). At every action it is what the micro-batches under way keep, the streams that
// arrive and leave, and what the action itself needs for a moment (dsrun_stage.h). The peak is the action
// with the largest sum, and the classes are those of that moment.
#include <algorithm>

#include "cost_models/dsrun_stage.h"
#include "cost_models/memory_rules.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/holdings.h"
#include "specs/schedule/lowering.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

/// What is offloaded has a copy of its own on the host, the weights too where the device has no masters, and
/// the gradients in their own precision; nothing is staged.
void copy_to_host(const CostInputs& inputs, RankMemory& memory) {
  const double moments = inputs.training.optimizer.type == specs::OptimizerKind::adamw ? 2 : 1;
  const double moved =
      memory.host_of(MemoryClass::optimizer_state) / (moments * std::max(4.0, inputs.element_bytes));
  memory.host_of(MemoryClass::master_weights) = std::max(4.0, inputs.element_bytes) * moved;
  memory.host_of(MemoryClass::gradients) = inputs.gradient_bytes * moved;
  memory.host_pinned = 0;
}

bool splits_backward(specs::ScheduleKind kind) {
  return kind == specs::ScheduleKind::zero_bubble_h1 || kind == specs::ScheduleKind::zero_bubble_h2 ||
         kind == specs::ScheduleKind::zero_bubble_v;
}

/// Micro-batches after which a schedule is in its steady state: more add nothing, but to GPipe.
std::int32_t followed_micro_batches(const PipelineShape& shape) {
  const double steady = shape.ranks == 1                               ? 2
                        : shape.schedule == specs::ScheduleKind::gpipe ? 2
                                                                       : 4 * shape.ranks;
  return static_cast<std::int32_t>(std::min(shape.micro_batches, steady));
}

specs::Schedule schedule_of(const PipelineShape& shape) {
  const auto ranks = static_cast<std::int32_t>(shape.ranks);
  const auto chunks = static_cast<std::int32_t>(shape.virtual_stages);
  const auto group = static_cast<std::int32_t>(shape.micro_batch_group);
  std::int32_t micro_batches = followed_micro_batches(shape);
  if (!specs::schedule_refusal(shape.schedule, ranks, chunks, micro_batches, group).empty())
    micro_batches = static_cast<std::int32_t>(shape.micro_batches);
  if (!specs::schedule_refusal(shape.schedule, ranks, chunks, micro_batches, group).empty()) return {};
  return specs::lower(specs::generate_schedule(shape.schedule, ranks, chunks, micro_batches, group));
}

class FollowedRank {
 public:
  FollowedRank(const CostInputs& inputs, const RankLoad& load)
      : load_(load), schedule_(schedule_of(load.pipeline)) {
    for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(load.pipeline.virtual_stages); ++chunk)
      chunks_.push_back(stage_holdings(inputs, load, chunk, splits_backward(load.pipeline.schedule)));
    // All further forwards of GPipe stand before its first backward.
    if (load.pipeline.schedule == specs::ScheduleKind::gpipe && load.pipeline.ranks > 1)
      further_ = load.pipeline.micro_batches - schedule_.micro_batches;
    // Tokens and targets of the step, in 64 bits.
    batch_bytes_ = 16 * load_tokens(inputs, load) * load.pipeline.micro_batches;
  }

  /// Of the fullest moment.
  ClassBytes peak() {
    specs::follow_holdings(schedule_, static_cast<std::int32_t>(load_.pipeline_rank),
                           [this](const specs::Holdings& moment) { consider(moment); });
    return largest_;
  }

 private:
  static double& of(ClassBytes& bytes, MemoryClass memory_class) {
    return bytes[static_cast<std::size_t>(memory_class)];
  }

  void consider(const specs::Holdings& moment) {
    ClassBytes bytes = standing(moment);
    const auto index = static_cast<std::size_t>(moment.action.stage / schedule_.pipeline_ranks);
    const StageHoldings& chunk = chunks_[index];
    if (moment.action.kind != specs::ActionKind::weight_gradient) {
      add(bytes, chunk.kept, -1);
      const bool last = moment.action.micro_batch == schedule_.micro_batches - 1;
      add(bytes, moment.action.kind == specs::ActionKind::forward ? chunk.forward
                 : last                                           ? chunk.last_backward
                                                                  : chunk.backward);
    }
    if (const double total = sum(bytes); total > most_) {
      most_ = total;
      largest_ = bytes;
    }
  }

  ClassBytes standing(const specs::Holdings& moment) const {
    ClassBytes bytes{};
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const double kept = moment.kept[i] + (moment.kept[i] > 0 ? further_ : 0);
      add(bytes, chunks_[i].kept, kept);
      add(bytes, chunks_[i].deferred, moment.deferred[i]);
    }
    const double stream = chunks_.front().boundary_bytes;
    of(bytes, MemoryClass::activations) += batch_bytes_ + moment.arrived_activations * stream;
    if (moment.sending_activation >= 0)
      of(bytes, chunks_[static_cast<std::size_t>(moment.sending_activation)].output_class) += stream;
    of(bytes, MemoryClass::communication_buckets) += moment.arrived_gradients * stream;
    of(bytes, MemoryClass::workspace) +=
        (moment.own_gradients + (moment.sending_gradient >= 0 ? 1 : 0)) * stream;
    return bytes;
  }

  const RankLoad& load_;
  specs::Schedule schedule_;
  std::vector<StageHoldings> chunks_;
  double further_ = 0;
  double batch_bytes_ = 0;
  ClassBytes largest_{};
  double most_ = -1;
};

}  // namespace

RankMemory dsrun_memory(const CostInputs& inputs, const RankLoad& load) {
  RankMemory memory;
  add_model_states(inputs, load, inputs.element_bytes, inputs.gradient_bytes, memory);
  move_offloaded_states(inputs, load, memory);
  copy_to_host(inputs, memory);
  add(memory.device, FollowedRank(inputs, load).peak());
  return memory;
}

}  // namespace cost_models
