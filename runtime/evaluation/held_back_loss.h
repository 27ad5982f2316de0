// How well a model predicts text that it was never trained on.
#pragma once

#include "runtime/data/batch_loader.h"
#include "runtime/train/trainer.h"

namespace runtime {

/// Collective: the mean loss over all targets of the loader's held-back sequences, in nats per token; the
/// same for any placement up to rounding. No gradients are made. 0 where nothing is held back.
double held_back_loss(Trainer& trainer, const BatchLoader& loader);

}  // namespace runtime
