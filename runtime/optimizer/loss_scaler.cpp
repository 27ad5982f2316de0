#include "runtime/optimizer/loss_scaler.h"

#include <algorithm>

namespace runtime {

LossScaler::LossScaler(const specs::LossScalingSpec& spec, bool enabled) : spec_(spec), enabled_(enabled) {
  if (enabled_) state_ = {spec_.initial_scale, 0, spec_.hysteresis};
}

void LossScaler::update(bool finite) {
  if (!enabled_) return;
  if (!finite) {
    state_.steps_since_overflow = 0;
    exhausted_ = state_.scale <= spec_.minimum_scale;
    if (state_.hysteresis_left > 1)
      --state_.hysteresis_left;
    else
      state_.scale = std::max(state_.scale / spec_.factor, spec_.minimum_scale);
    return;
  }
  exhausted_ = false;
  if (++state_.steps_since_overflow < spec_.window) return;
  state_.steps_since_overflow = 0;
  state_.hysteresis_left = spec_.hysteresis;
  state_.scale *= spec_.factor;
}

}  // namespace runtime
