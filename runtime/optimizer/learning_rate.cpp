#include "runtime/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace runtime {

double learning_rate(const specs::TrainingSpec& training, std::int64_t update) {
  const double peak = training.optimizer.learning_rate;
  const specs::LearningRateSchedule& schedule = training.schedule;
  if (update < schedule.warmup_steps)
    return peak * static_cast<double>(update + 1) / static_cast<double>(schedule.warmup_steps);
  const std::int64_t last = schedule.decay_steps > 0 ? schedule.decay_steps : training.steps;
  if (schedule.decay == specs::LearningRateDecay::constant || last <= schedule.warmup_steps) return peak;
  const double progress = std::min(1.0, static_cast<double>(update - schedule.warmup_steps) /
                                            static_cast<double>(last - schedule.warmup_steps));
  const double share = schedule.decay == specs::LearningRateDecay::linear
                           ? 1 - progress
                           : 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return peak * (schedule.minimum_ratio + (1 - schedule.minimum_ratio) * share);
}

}  // namespace runtime
