// What an offload takes off a device, and what it costs the host.
#include <algorithm>

#include "cost_models/memory_rules.h"
#include "cost_models/offload.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

double share(const specs::OffloadTreatment& treatment) {
  return treatment.device == specs::OffloadDevice::none ? 0.0 : static_cast<double>(treatment.eighths) / 8;
}

double& away(specs::OffloadDevice device, MemoryClass memory_class, RankMemory& memory) {
  return device == specs::OffloadDevice::nvme ? memory.nvme_of(memory_class) : memory.host_of(memory_class);
}

void move(const specs::OffloadTreatment& treatment, MemoryClass memory_class, RankMemory& memory) {
  const double moved = share(treatment) * memory.of(memory_class);
  memory.of(memory_class) -= moved;
  away(treatment.device, memory_class, memory) += moved;
}

/// A drive is never reached from pageable memory: DeepSpeed's swapper pins 4 buffers of fp32 optimizer state
/// and 5 of parameters, none larger than what there is to swap.
double swap_buffers(const CostInputs& inputs, const specs::OffloadTreatment& optimizer,
                    const specs::OffloadTreatment& parameters, double owned) {
  constexpr double default_elements = 1e8;
  const double elements = inputs.training.swap_buffer_elements > 0
                              ? static_cast<double>(inputs.training.swap_buffer_elements)
                              : default_elements;
  double bytes = 0;
  if (optimizer.device == specs::OffloadDevice::nvme)
    bytes += swap_buffer_bytes(4, std::min(elements, share(optimizer) * owned), 4);
  if (parameters.device == specs::OffloadDevice::nvme)
    bytes += swap_buffer_bytes(5, std::min(elements, share(parameters) * owned), inputs.element_bytes);
  return bytes;
}

}  // namespace

void move_offloaded_states(const CostInputs& inputs, const RankLoad& load, RankMemory& memory) {
  const double owned =
      static_cast<double>(load.parameters.dense) / load.shards.dense_shards(inputs.devices_per_node) +
      static_cast<double>(load.parameters.expert) / load.shards.expert_shards(inputs.devices_per_node);
  const specs::OffloadTreatment& optimizer = load.shards.offload.optimizer;
  const specs::OffloadTreatment parameters =
      load.shards.zero.stage >= 3 ? load.shards.offload.parameters : specs::OffloadTreatment{};
  move(optimizer, MemoryClass::optimizer_state, memory);
  move(optimizer, MemoryClass::master_weights, memory);
  move(parameters, MemoryClass::parameters, memory);
  if (share(optimizer) > 0) {
    constexpr double gradient_bytes = 4;  // fp32, as the host's Adam reads them
    const double gradients = share(optimizer) * owned * gradient_bytes;
    away(optimizer.device, MemoryClass::gradients, memory) += gradients;
    // Pinned buffers for the transfers: two buckets each way, at most what there is to move.
    memory.host_pinned += std::min(4 * 500e6 * inputs.element_bytes, 2 * owned * inputs.element_bytes);
  }
  memory.host_pinned += swap_buffers(inputs, optimizer, parameters, owned);
}

void offload_activations(const specs::OffloadTreatment& treatment, RankMemory& memory) {
  move(treatment, MemoryClass::activations, memory);
  move(treatment, MemoryClass::recomputation_checkpoints, memory);
}

}  // namespace cost_models
