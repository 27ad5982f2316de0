#include "cost_models/schedule_moments.h"

#include <algorithm>

#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace cost_models {
namespace {

using specs::Holdings;

/// Micro-batches after which a schedule is in its steady state: more add nothing, but to GPipe.
std::int32_t followed_micro_batches(const PipelineShape& shape) {
  const double steady = shape.ranks == 1                               ? 2
                        : shape.schedule == specs::ScheduleKind::gpipe ? 2
                                                                       : 4 * shape.ranks;
  return static_cast<std::int32_t>(std::min(shape.micro_batches, steady));
}

bool possible(const ScheduleMomentsMemo::Key& key) {
  return specs::schedule_refusal(key.kind, key.ranks, key.chunks, key.micro_batches, key.group).empty();
}

ScheduleMomentsMemo::Key key_of(const PipelineShape& shape) {
  ScheduleMomentsMemo::Key key{shape.schedule, static_cast<std::int32_t>(shape.ranks),
                               static_cast<std::int32_t>(shape.virtual_stages), followed_micro_batches(shape),
                               static_cast<std::int32_t>(shape.micro_batch_group)};
  if (!possible(key)) key.micro_batches = static_cast<std::int32_t>(shape.micro_batches);
  return key;
}

bool all_at_most(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](std::int32_t x, std::int32_t y) { return x <= y; });
}

std::int32_t gradients_of_its_own(const Holdings& moment) {
  return moment.own_gradients + (moment.sending_gradient >= 0 ? 1 : 0);
}

/// The fullest moments of one rank.
class FullestMoments {
 public:
  FullestMoments(std::int32_t ranks, std::int32_t micro_batches) : ranks_(ranks), last_(micro_batches - 1) {}

  void consider(const Holdings& moment) {
    for (const Holdings& other : moments_)
      if (holds_no_more(moment, other)) return;
    std::erase_if(moments_, [&](const Holdings& other) { return holds_no_more(other, moment); });
    moments_.push_back(moment);
  }

  std::vector<Holdings> take() { return std::move(moments_); }

 private:
  bool holds_no_more(const Holdings& a, const Holdings& b) const {
    return a.action.kind == b.action.kind && a.action.stage / ranks_ == b.action.stage / ranks_ &&
           (a.action.micro_batch != last_ || b.action.micro_batch == last_) &&
           a.sending_activation == b.sending_activation && a.arrived_activations <= b.arrived_activations &&
           a.arrived_gradients <= b.arrived_gradients && gradients_of_its_own(a) <= gradients_of_its_own(b) &&
           all_at_most(a.kept, b.kept) && all_at_most(a.deferred, b.deferred);
  }

  std::int32_t ranks_;
  std::int32_t last_;  ///< micro-batch, whose backward passes complete gradients
  std::vector<Holdings> moments_;
};

ScheduleMoments followed(const ScheduleMomentsMemo::Key& key) {
  ScheduleMoments moments;
  if (!possible(key)) return moments;
  moments.micro_batches = key.micro_batches;
  const specs::Schedule schedule =
      specs::lower(specs::generate_schedule(key.kind, key.ranks, key.chunks, key.micro_batches, key.group));
  for (std::int32_t rank = 0; rank < key.ranks; ++rank) {
    FullestMoments fullest(key.ranks, key.micro_batches);
    specs::follow_holdings(schedule, rank, [&](const Holdings& moment) { fullest.consider(moment); });
    moments.of_rank.push_back(fullest.take());
  }
  return moments;
}

}  // namespace

std::size_t hash_value(const ScheduleMomentsMemo::Key& key) {
  std::size_t hash = static_cast<std::size_t>(key.kind);
  for (const std::int32_t part : {key.ranks, key.chunks, key.micro_batches, key.group})
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15ull;
  return hash;
}

const ScheduleMoments& ScheduleMomentsMemo::get(const PipelineShape& shape) const {
  const Key key = key_of(shape);
  return moments_.get(key, [&] { return followed(key); });
}

}  // namespace cost_models
