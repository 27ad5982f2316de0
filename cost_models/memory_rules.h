// The memory formulas of each software stack, behind rank_memory.
#pragma once

#include "cost_models/memory.h"

namespace cost_models {

RankMemory megatron_core_memory(const CostInputs& inputs, const RankLoad& load);
RankMemory fsdp2_memory(const CostInputs& inputs, const RankLoad& load);
RankMemory deepspeed_memory(const CostInputs& inputs, const RankLoad& load);
RankMemory megatron_deepspeed_memory(const CostInputs& inputs, const RankLoad& load);
RankMemory dsrun_memory(const CostInputs& inputs, const RankLoad& load);

/// Tokens of one micro-batch on one context rank.
double load_tokens(const CostInputs& inputs, const RankLoad& load);

/// Activations that all layers of the load keep, bytes per token and micro-batch in flight; recomputed layers
/// keep their input.
struct KeptActivations {
  double activations = 0;
  double checkpoints = 0;
};
KeptActivations kept_activations(const LayerActivations& layer, const UnitCounts& counts);

/// Parameters, gradients, moments and master weights of a mixed-precision optimizer, all on the device:
/// `parameter_bytes` and `gradient_bytes` for each parameter on the rank, moments and master weights for the
/// owned ones.
void add_model_states(const CostInputs& inputs, const RankLoad& load, double parameter_bytes,
                      double gradient_bytes, RankMemory& memory);

/// Moves what the load offloads from the device to the host or the drive: moments and master weights, ZeRO-3
/// parameters; fp32 gradients and pinned buffers come with them. ZeRO-3 shards the host's part as well.
void move_offloaded_states(const CostInputs& inputs, const RankLoad& load, RankMemory& memory);

/// What is kept for the backward pass leaves the device layer by layer and comes back before its use.
void offload_activations(const specs::OffloadTreatment& treatment, RankMemory& memory);

}  // namespace cost_models
