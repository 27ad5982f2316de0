// The global gradient norm: each element of the model counted once, whatever the placement.
#pragma once

#include "runtime/data_parallel/sharding.h"
#include "runtime/mesh/mesh.h"
#include "runtime/model/parameter_registry.h"
#include "runtime/train/fault_switches.h"

namespace runtime {

/// This rank's share of the sum of squares, which added over the world is the whole: of each parameter that
/// the rank answers for on the tensor axis, the part in the bucket's shard, divided among the ranks that hold
/// the same. Gradients must be whole there.
double squared_norm_share(const ParameterRegistry& registry, const Mesh& mesh, const Sharding& sharding,
                          const FaultSwitches& faults);

/// min(1, limit / (norm + 1e-6)); 1 where the limit is 0. (The 1e-6 is PyTorch's and Megatron's.)
double clip_coefficient(double norm, double limit);

}  // namespace runtime
