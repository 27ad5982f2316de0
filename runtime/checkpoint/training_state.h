// What a run must know, beside its tensors, to go on as if it had never stopped. There is no generator state:
// every random number is a function of the seed and of counters that follow from these.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/optimizer/loss_scaler.h"

namespace runtime {

struct TrainingState {
  std::int64_t step = 0;              ///< done
  std::int64_t consumed_samples = 0;  ///< sequences: the place of the next one in the sampler's order
  std::int64_t optimizer_updates = 0;
  double learning_rate = 0;  ///< of the last update
  std::uint64_t seed = 0;
  LossScalerState loss_scaler;
  std::string plan_hash;  ///< of the plan that wrote the checkpoint
  bool operator==(const TrainingState&) const = default;
};

}  // namespace runtime
