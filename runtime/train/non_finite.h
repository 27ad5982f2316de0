// Where a step's numbers first ceased to be finite.
#pragma once

#include <string>
#include <vector>

#include "runtime/train/trainer.h"

namespace runtime {

/// Collective, after a step that changed nothing: the first tensor in the order of computation that is not
/// finite, with its layer and rank, the same text on every rank. Looks at the outputs of the units in the
/// order of the forward pass (run again, without dropout, where the loss is not finite), then at the
/// gradients in the order of the backward pass. Empty where all are finite now.
std::string first_non_finite(Trainer& trainer, const std::vector<MicroBatch>& micro_batches,
                             const StepResult& result);

}  // namespace runtime
