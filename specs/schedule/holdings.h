// What a pipeline rank holds while it runs its part of a lowered schedule: the counts from which its memory
// follows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "specs/schedule/schedule.h"

namespace specs {

/// While one compute action runs, in whole micro-batches. What the action itself works on is counted: a
/// forward's micro-batch among those kept, a backward's gradient among those arrived.
struct Holdings {
  Action action;
  std::vector<std::int32_t> kept;        ///< between forward and backward, by chunk: stage / pipeline ranks
  std::vector<std::int32_t> deferred;    ///< between input and weight gradient, by chunk
  std::int32_t arrived_activations = 0;  ///< posted or here, their forward still to come
  std::int32_t arrived_gradients = 0;    ///< of the rank that holds the next stage
  std::int32_t own_gradients = 0;        ///< made on this rank: for its own stage before, or not yet sent
  /// The last one sent lives until the next is sent: the chunk that it comes from, −1 before any.
  std::int32_t sending_activation = -1;
  std::int32_t sending_gradient = -1;
};

/// Visits each compute action of the rank, in order.
void follow_holdings(const Schedule& lowered, std::int32_t pipeline_rank,
                     const std::function<void(const Holdings&)>& visit);

}  // namespace specs
