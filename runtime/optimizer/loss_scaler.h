// The dynamic loss scale of fp16 training: as large as the gradients bear.
#pragma once

#include <cstdint>

#include "specs/language/training.h"

namespace runtime {

/// As in DeepSpeed: a step whose gradients overflow uses up one of `hysteresis`; with the last one gone,
/// every further one divides the scale by `factor`. After `window` steps without overflow the scale grows by
/// `factor` and the hysteresis is full again.
class LossScaler {
 public:
  struct State {
    double scale = 1;
    std::int64_t steps_since_overflow = 0;
    std::int64_t hysteresis_left = 1;
    bool operator==(const State&) const = default;
  };

  /// Disabled: the scale stays 1, whatever happens.
  LossScaler(const specs::LossScalingSpec& spec, bool enabled);

  double scale() const { return state_.scale; }
  /// After each step; every rank must say the same.
  void update(bool finite);
  /// The last step overflowed at the smallest scale: training cannot go on.
  bool exhausted() const { return exhausted_; }

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  specs::LossScalingSpec spec_;
  bool enabled_;
  bool exhausted_ = false;
  State state_;
};

}  // namespace runtime
