// What one stage of a model holds for one micro-batch in this project's runtime, by class: a walk through the
// units of the stage in the order in which the runtime runs them (runtime/model, runtime/parallel).
//
// Per token of a micro-batch, in elements of the training precision, with t ranks on the tensor axis, s = t
// under sequence parallelism or 1, h hidden, q and k the widths of all query and of all key heads on a rank,
// f the inner width / t, g = 2 for a gated FFN or 1:
//
//   attention keeps   x, its norm's output (2h/s) and statistics, q, k, v and the result (2q + 2k), the
//                     log-sum-exp of each head; unfused attention the softmax of the scores instead
//   FFN keeps         x, its norm's output (2h/s) and statistics, the inner products and their activation
//                     ((1 + g) f)
//   output keeps      x and its norm's output (2h/s), and the gradient of the logits in their place
//
// A recomputed run of layers keeps its x alone. What backward needs for a moment beside that stands with each
// step of the walk.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "cost_models/memory.h"

namespace cost_models {

using ClassBytes = std::array<double, memory_classes>;

double sum(const ClassBytes& bytes);
ClassBytes& add(ClassBytes& bytes, const ClassBytes& other, double times = 1);

/// One micro-batch on one stage.
struct StageHoldings {
  ClassBytes kept{};           ///< between its forward and backward passes
  ClassBytes deferred{};       ///< between its input and weight gradients
  ClassBytes forward{};        ///< at the end of its forward pass, what it keeps included
  ClassBytes backward{};       ///< at the fullest moment of its backward pass, what it still keeps included
  ClassBytes last_backward{};  ///< the same of the last micro-batch, whose gradients are complete
  /// Of the stage's result.
  specs::MemoryClass output_class = specs::MemoryClass::activations;
  double boundary_bytes = 0;  ///< of the residual stream, as it lies between the units
};

/// Of a rank's chunk `chunk` (0 … virtual stages − 1). `defers`: its weight gradients are computed apart.
StageHoldings stage_holdings(const CostInputs& inputs, const RankLoad& load, std::size_t chunk, bool defers);

}  // namespace cost_models
