// The dynamic loss scale of fp16 training: as large as the gradients bear.
#pragma once

#include <cstdint>

#include "specs/language/training.h"

namespace runtime {

/// Of fp16 training; neutral otherwise.
struct LossScalerState {
  double scale = 1;
  std::int64_t good_steps = 0;  ///< since the last overflow or growth
  std::int64_t hysteresis_left = 0;
  std::int64_t skipped_steps = 0;
  bool operator==(const LossScalerState&) const = default;
};

/// As in DeepSpeed: a step whose gradients overflow uses up one of `hysteresis`; with the last one gone,
/// every further one divides the scale by `factor`. After `window` steps without overflow the scale grows by
/// `factor` and the hysteresis is full again.
class LossScaler {
 public:
  /// Disabled: the scale stays 1, whatever happens.
  LossScaler(const specs::LossScalingSpec& spec, bool enabled);

  double scale() const { return state_.scale; }
  /// After each step; every rank must say the same.
  void update(bool finite);
  /// The last step overflowed at the smallest scale: training cannot go on.
  bool exhausted() const { return exhausted_; }

  const LossScalerState& state() const { return state_; }
  /// Of a checkpoint; the neutral state of a run in another precision is passed over.
  void restore(const LossScalerState& state);

 private:
  specs::LossScalingSpec spec_;
  bool enabled_;
  bool exhausted_ = false;
  LossScalerState state_;
};

}  // namespace runtime
