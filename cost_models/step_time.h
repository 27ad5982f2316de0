// One step of the whole job from its ranks: the pipeline's closed form, then what follows the last backward
// pass.
#pragma once

#include <cstdint>
#include <span>

#include "cost_models/cost_inputs.h"
#include "cost_models/pipeline.h"
#include "cost_models/stage_cost.h"

namespace cost_models {

/// A run of pipeline ranks that cost the same.
struct RankSeconds {
  double micro_batch = 0;  ///< forward and backward of one micro-batch through all its stages
  StepEndSeconds end;
  double ranks = 1;
};

/// What does not depend on the rank.
struct StepShape {
  PipelineShape pipeline;
  double tensor = 1;
  double transfer_seconds = 0;  ///< exposed, of one micro-batch over one boundary, both ways
};

struct StepSeconds {
  PipelineSeconds pipeline;
  StepEndSeconds end;  ///< of the rank whose end takes longest
  double fixed = 0;
  std::size_t slowest = 0;  ///< index of the run that paces the pipeline
  double total() const { return pipeline.total() + end.total() + fixed; }
};

/// Exposed seconds of moving one micro-batch's activations forward and gradients back over one boundary, once
/// for each virtual stage.
double boundary_seconds(const CostInputs& inputs, const ShardKey& shards, double micro_batch, double tensor,
                        double virtual_stages);

StepSeconds step_seconds(const CostInputs& inputs, const StepShape& shape,
                         std::span<const RankSeconds> ranks);

}  // namespace cost_models
