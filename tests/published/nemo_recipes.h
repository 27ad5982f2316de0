// What the performance recipes of NeMo and Megatron-Bridge switch on that the record has no column for.
#pragma once

#include <string>
#include <vector>

#include "tests/published/csv.h"

namespace published {

/// Stack features of a mixture's run by its release, device, model and layout, after
/// scripts/performance/configs/*/…workload_base_configs.py of NVIDIA-NeMo/Megatron-Bridge at v0.2.2 (25.11),
/// v0.3.1 (26.02), v0.4.2 (26.04) and v0.5.1 (26.06): "partial_graphs" (CUDA graphs of attention, router and
/// preprocessing), "full_graphs" (of the whole iteration, with fused grouped products), "expert_overlap".
/// Empty for other rows.
std::vector<std::string> recipe_features(const Row& row);

}  // namespace published
