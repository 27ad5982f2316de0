// What this project's runtime holds whole for a moment under ZeRO 2 and 3: the gradient bucket that is filled
// and the one that travels, and with ZeRO 3 the gathered units. It follows runtime/data_parallel.
#pragma once

#include <vector>

#include "cost_models/memory.h"

namespace cost_models {

/// While one unit's backward pass runs.
struct WholeBuffers {
  double gradient_bytes = 0;   ///< buckets
  double parameter_bytes = 0;  ///< gathered units
};

/// In the order of the backward pass: the output layer, the layers from the last to the first, the embedding.
/// Of a load that holds the whole model, with a ZeRO stage of 2 or 3 over more than one rank.
std::vector<WholeBuffers> whole_buffers(const CostInputs& inputs, const RankLoad& load);

}  // namespace cost_models
