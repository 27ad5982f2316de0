// What every layer needs to know of the micro-batch that passes through it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/model/unit_pass.h"

namespace runtime {

/// Sequences of one replica that travel together. int64 [sequences, length]; a negative target is not
/// counted.
struct MicroBatch {
  at::Tensor tokens;
  at::Tensor targets;
  std::int64_t first_sequence = 0;  ///< position of the first one in the step's global batch
};

/// Weight gradients: computed at once, or, where a schedule splits the backward pass, kept for later.
class WeightGradientQueue {
 public:
  void run(std::function<void()> work) {
    if (deferring)
      waiting_.push_back(std::move(work));
    else
      work();
  }
  /// Computes what waits, in the order in which it came.
  void flush() {
    for (auto& work : std::exchange(waiting_, {})) work();
  }
  bool empty() const { return waiting_.empty(); }

  bool deferring = false;

 private:
  std::vector<std::function<void()>> waiting_;
};

/// Lives from the forward pass of a micro-batch through a stage to the end of its backward pass: layers keep
/// a pointer to it.
struct ForwardContext {
  const MicroBatch* batch = nullptr;
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t step = 0;   ///< optimizer updates so far; part of the counter of dropout masks
  double loss_weight = 1;  ///< of each target token: 1 / target tokens of the global batch, × loss scale
  bool training = true;    ///< false: no dropout, no gradients
  bool other_masks_on_replay = false;  ///< fault injection
  UnitPassListener* units = nullptr;   ///< told of each unit's passes; may be null
  WeightGradientQueue weight_gradients;

  std::int64_t tokens() const { return sequences * length; }
};

}  // namespace runtime
