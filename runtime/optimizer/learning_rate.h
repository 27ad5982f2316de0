// The learning rate of an update: warm-up, then decay.
#pragma once

#include <cstdint>

#include "specs/language/training.h"

namespace runtime {

/// `update` counts from 0. Linear from peak / warmup to the peak over the warm-up, then to `minimum_ratio` of
/// it at `decay_steps` (0: the training's steps), constant after that.
double learning_rate(const specs::TrainingSpec& training, std::int64_t update);

}  // namespace runtime
