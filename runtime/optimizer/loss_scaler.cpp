#include "runtime/optimizer/loss_scaler.h"

#include <algorithm>

namespace runtime {

LossScaler::LossScaler(const specs::LossScalingSpec& spec, bool enabled) : spec_(spec), enabled_(enabled) {
  if (enabled_) state_ = {spec_.initial_scale, 0, spec_.hysteresis, 0};
}

void LossScaler::update(bool finite) {
  if (!enabled_) return;
  if (!finite) {
    state_.good_steps = 0;
    ++state_.skipped_steps;
    exhausted_ = state_.scale <= spec_.minimum_scale;
    if (state_.hysteresis_left > 1)
      --state_.hysteresis_left;
    else
      state_.scale = std::max(state_.scale / spec_.factor, spec_.minimum_scale);
    return;
  }
  exhausted_ = false;
  if (++state_.good_steps < spec_.window) return;
  state_.good_steps = 0;
  state_.hysteresis_left = spec_.hysteresis;
  state_.scale *= spec_.factor;
}

void LossScaler::restore(const LossScalerState& state) {
  if (enabled_ && state.hysteresis_left > 0) state_ = state;
}

}  // namespace runtime
