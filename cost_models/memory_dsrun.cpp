// This project's runtime: a rank's memory is followed through its part of the schedule
// (schedule_moments.h). At every action it is what the micro-batches under way keep, the streams that
// arrive and leave, and what the action itself needs for a moment (dsrun_stage.h). The peak is the action
// with the largest sum, and the classes are those of that moment.
#include <algorithm>
#include <vector>

#include "cost_models/dsrun_stage.h"
#include "cost_models/memory_rules.h"
#include "cost_models/schedule_moments.h"

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

class FollowedRank {
 public:
  FollowedRank(const CostInputs& inputs, const RankLoad& load)
      : load_(load), moments_(inputs.moments->get(load.pipeline)) {
    for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(load.pipeline.virtual_stages); ++chunk)
      chunks_.push_back(stage_holdings(inputs, load, chunk, splits_backward(load.pipeline.schedule)));
    // All further forwards of GPipe stand before its first backward.
    if (load.pipeline.schedule == specs::ScheduleKind::gpipe && load.pipeline.ranks > 1)
      further_ = load.pipeline.micro_batches - moments_.micro_batches;
    // Tokens and targets of the step, in 64 bits.
    batch_bytes_ = 16 * load_tokens(inputs, load) * load.pipeline.micro_batches;
  }

  /// Of the fullest moment, of equal ones the first.
  ClassBytes peak() const {
    if (moments_.of_rank.empty()) return {};
    std::vector<Totals> totals;
    for (const StageHoldings& chunk : chunks_) totals.emplace_back(chunk);
    const specs::Holdings* fullest = nullptr;
    double most = -1;
    const auto first = static_cast<std::size_t>(load_.pipeline_rank);
    for (std::size_t rank = first; rank < first + static_cast<std::size_t>(load_.alike_ranks); ++rank)
      for (const specs::Holdings& moment : moments_.of_rank[rank]) {
        const double total = total_of(moment, totals);
        if (total <= most * (1 + 1e-12)) continue;
        most = total;
        fullest = &moment;
      }
    return fullest == nullptr ? ClassBytes{} : at(*fullest);
  }

 private:
  /// Of one chunk over all classes.
  struct Totals {
    explicit Totals(const StageHoldings& chunk)
        : kept(sum(chunk.kept)),
          deferred(sum(chunk.deferred)),
          forward(sum(chunk.forward)),
          backward(sum(chunk.backward)),
          last_backward(sum(chunk.last_backward)) {}
    double kept, deferred, forward, backward, last_backward;
  };

  static double& of(ClassBytes& bytes, MemoryClass memory_class) {
    return bytes[static_cast<std::size_t>(memory_class)];
  }
  std::size_t chunk_of(const specs::Holdings& moment) const {
    return static_cast<std::size_t>(moment.action.stage / static_cast<std::int32_t>(load_.pipeline.ranks));
  }
  bool of_last_micro_batch(const specs::Holdings& moment) const {
    return moment.action.micro_batch == moments_.micro_batches - 1;
  }
  double kept(const specs::Holdings& moment, std::size_t chunk) const {
    return moment.kept[chunk] + (moment.kept[chunk] > 0 ? further_ : 0);
  }

  /// The sum of `at`.
  double total_of(const specs::Holdings& moment, const std::vector<Totals>& totals) const {
    double total = batch_bytes_;
    for (std::size_t i = 0; i < totals.size(); ++i)
      total += kept(moment, i) * totals[i].kept + moment.deferred[i] * totals[i].deferred;
    const std::int32_t streams = moment.arrived_activations + moment.arrived_gradients +
                                 moment.own_gradients + (moment.sending_activation >= 0 ? 1 : 0) +
                                 (moment.sending_gradient >= 0 ? 1 : 0);
    total += streams * chunks_.front().boundary_bytes;
    const Totals& chunk = totals[chunk_of(moment)];
    if (moment.action.kind == specs::ActionKind::weight_gradient) return total;
    if (moment.action.kind == specs::ActionKind::forward) return total - chunk.kept + chunk.forward;
    return total - chunk.kept + (of_last_micro_batch(moment) ? chunk.last_backward : chunk.backward);
  }

  ClassBytes at(const specs::Holdings& moment) const {
    ClassBytes bytes = standing(moment);
    const StageHoldings& chunk = chunks_[chunk_of(moment)];
    if (moment.action.kind != specs::ActionKind::weight_gradient) {
      add(bytes, chunk.kept, -1);
      add(bytes, moment.action.kind == specs::ActionKind::forward ? chunk.forward
                 : of_last_micro_batch(moment)                    ? chunk.last_backward
                                                                  : chunk.backward);
    }
    return bytes;
  }

  ClassBytes standing(const specs::Holdings& moment) const {
    ClassBytes bytes{};
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      add(bytes, chunks_[i].kept, kept(moment, i));
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
  const ScheduleMoments& moments_;
  std::vector<StageHoldings> chunks_;
  double further_ = 0;
  double batch_bytes_ = 0;
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
