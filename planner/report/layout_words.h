// A placement in a few words, the way practitioners say it.
#pragma once

#include <string>

#include "specs/plan/placement.h"

namespace planner {

/// "tensor 8 × pipeline 16 × data 8"; context and expert degrees where they are not 1. Stages with unlike
/// meshes: "16 stages with meshes of their own".
std::string mesh_words(const specs::Placement& placement);

/// "interleaved with 6 stages a rank, micro-batch 1 × 192"; without a pipeline "micro-batch 4 × 12".
std::string schedule_words(const specs::Placement& placement);

/// "interleaved ×6", "1f1b"; empty without a pipeline.
std::string short_schedule_words(const specs::Placement& placement);

/// "1 × 192": sequences of a micro-batch, micro-batches of a replica.
std::string micro_batch_words(const specs::Placement& placement);

/// "selective recomputation, sequence parallel, ZeRO 1"; "nothing" where nothing saves memory.
std::string memory_saving_words(const specs::Placement& placement);

/// "none", "selective", "full" where all layers are treated alike, else "mixed".
std::string recomputation_words(const specs::Placement& placement);

/// "layers 0–5", "embedding, layers 0–5", "layer 90 FFN, layers 91–95, output layer".
std::string unit_words(const specs::UnitRange& units, std::int64_t layers);

/// The units of all stages of a pipeline rank: "layers 0–2; layers 24–26".
std::string rank_unit_words(const specs::Placement& placement, std::int64_t pipeline_rank,
                            std::int64_t layers);

}  // namespace planner
