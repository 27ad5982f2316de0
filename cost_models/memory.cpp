#include "cost_models/memory.h"

#include <algorithm>

#include "cost_models/memory_rules.h"

namespace cost_models {

using specs::MemoryClass;

double RankMemory::allocated() const {
  double sum = 0;
  for (std::size_t i = 0; i < memory_classes; ++i) sum += device[i];
  return sum - of(MemoryClass::allocator_slack) - of(MemoryClass::framework_context) -
         of(MemoryClass::communicator_buffers);
}

double RankMemory::reserved() const { return allocated() + of(MemoryClass::allocator_slack); }

double RankMemory::total() const {
  return reserved() + of(MemoryClass::framework_context) + of(MemoryClass::communicator_buffers);
}

double RankMemory::host_total() const {
  double sum = host_pinned;
  for (const double bytes : host) sum += bytes;
  return sum;
}

double RankMemory::nvme_total() const {
  double sum = 0;
  for (const double bytes : nvme) sum += bytes;
  return sum;
}

double load_tokens(const CostInputs& inputs, const RankLoad& load) {
  return load.micro_batch * inputs.sizes.sequence / load.shards.context;
}

ModuleSplit module_split(const specs::ModelSpec& model, const specs::ModuleTreatments& modules,
                         std::int64_t tensor) {
  const ShardDegrees degrees = shard_degrees(model, modules, tensor);
  const auto width = [tensor](std::int64_t degree, specs::ReplicaWork work) {
    return static_cast<double>(work == specs::ReplicaWork::token_share ? tensor : degree);
  };
  ModuleSplit split;
  split.tensor = static_cast<double>(tensor);
  split.attention = static_cast<double>(degrees.attention_tensor);
  split.feed_forward = static_cast<double>(degrees.feed_forward_tensor);
  split.embedding = static_cast<double>(degrees.embedding_tensor);
  split.output = static_cast<double>(degrees.output_tensor);
  split.attention_width = width(degrees.attention_tensor, modules.attention_work);
  split.feed_forward_width = width(degrees.feed_forward_tensor, modules.feed_forward_work);
  split.token_parallel_output = modules.output_mode == specs::OutputLayerMode::token_parallel;
  split.logits = split.token_parallel_output ? split.tensor : split.output;
  return split;
}

LayerActivations layer_activations(const CostInputs& inputs, const ModuleSplit& split, double residual_shards,
                                   double context) {
  const double attention = split.attention_width, feed_forward = split.feed_forward_width;
  const ModelSizes& sizes = inputs.sizes;
  const double h = sizes.hidden;
  const double b = inputs.element_bytes;
  LayerActivations layer;
  layer.layer_input = b * h / residual_shards;
  if (sizes.latent) {
    layer.attention = 2 * b * h / residual_shards + 2 * b * sizes.query_rank / residual_shards +
                      b * (sizes.key_value_rank + sizes.rotary_head_dim) / residual_shards +
                      b * sizes.key_value_rank / residual_shards +
                      (2 * b * sizes.heads * sizes.query_key_dim + 2 * b * sizes.heads * sizes.value_dim +
                       4 * sizes.heads) /
                          attention;
  } else {
    const double query = sizes.heads * sizes.head_dim;
    const double key = sizes.kv_heads * sizes.head_dim;
    // Context parallelism keeps the attention output once more: the merged one beside the last block's.
    const double outputs = context > 1 ? 2 : 1;
    layer.attention = 2 * b * h / residual_shards + b * (query + 2 * key + outputs * query) / attention +
                      4 * sizes.heads / attention;
  }
  if (inputs.training.attention == specs::AttentionImplementation::unfused) {
    layer.scores = (2 * b + 1) * sizes.heads * sizes.sequence / context / attention;
    layer.attention += layer.scores - 4 * sizes.heads / attention;
  }
  layer.feed_forward =
      2 * b * h / residual_shards + b * sizes.ffn_hidden * (1 + sizes.gate_factor) / feed_forward;
  if (sizes.experts > 0) {
    const double routed = b * h + b * sizes.expert_hidden * (1 + sizes.gate_factor);
    layer.mixture = 2 * b * h / residual_shards + sizes.top_k * routed / residual_shards +
                    b * sizes.shared_hidden * (1 + sizes.gate_factor) / feed_forward +
                    (12 * sizes.experts + 8 * sizes.top_k) / residual_shards;
  }
  return layer;
}

KeptActivations kept_activations(const LayerActivations& layer, const UnitCounts& counts) {
  constexpr auto selective = static_cast<std::size_t>(specs::Recomputation::selective);
  constexpr auto full = static_cast<std::size_t>(specs::Recomputation::full);
  KeptActivations kept;
  for (std::size_t mode = 0; mode < recompute_modes; ++mode) {
    if (mode == full) continue;
    const double attention =
        layer.attention -
        (mode == selective && counts.recomputes(specs::RecomputedModule::core_attention) ? layer.scores : 0);
    kept.activations += (counts.attention[mode] + counts.encoder_attention[mode]) * attention +
                        counts.feed_forward[mode] * layer.feed_forward + counts.mixture[mode] * layer.mixture;
  }
  // A recomputed layer keeps one input, whether the stage holds both its halves or one.
  kept.checkpoints = std::max(counts.attention[full] + counts.encoder_attention[full],
                              counts.feed_forward[full] + counts.mixture[full]) *
                     layer.layer_input / counts.checkpoint_layers;
  return kept;
}

void add_model_states(const CostInputs& inputs, const RankLoad& load, double parameter_bytes,
                      double gradient_bytes, RankMemory& memory) {
  const double dense = static_cast<double>(load.parameters.dense);
  const double expert = static_cast<double>(load.parameters.expert);
  const specs::ZeroTreatment& zero = load.shards.zero;
  const double dense_shards = load.shards.dense_shards(inputs.devices_per_node);
  const double expert_shards = load.shards.expert_shards(inputs.devices_per_node);
  const double owned = dense / dense_shards + expert / expert_shards;
  const double held_parameters = zero.stage >= 3 ? owned : dense + expert;
  const double held_gradients = zero.stage >= 2 ? owned : dense + expert;
  memory.of(MemoryClass::parameters) += parameter_bytes * held_parameters;
  memory.of(MemoryClass::gradients) += gradient_bytes * held_gradients;
  const bool adam = inputs.training.optimizer.type == specs::OptimizerKind::adamw;
  const double moment_bytes = std::max(4.0, inputs.element_bytes);  // fp64 training keeps fp64 moments
  const double state_bytes = (adam ? 2 : 1) * moment_bytes;
  const double master_bytes = specs::keeps_master_weights(inputs.training.precision) ? 4.0 : 0.0;
  memory.of(MemoryClass::optimizer_state) += state_bytes * owned;
  memory.of(MemoryClass::master_weights) += master_bytes * owned;
}

namespace {

RankMemory allocated_memory(const CostInputs& inputs, const RankLoad& load) {
  switch (inputs.profile.memory) {
    case MemoryRules::megatron_core:
      return megatron_core_memory(inputs, load);
    case MemoryRules::fsdp2:
      return fsdp2_memory(inputs, load);
    case MemoryRules::deepspeed:
      return deepspeed_memory(inputs, load);
    case MemoryRules::megatron_deepspeed:
      return megatron_deepspeed_memory(inputs, load);
    case MemoryRules::dsrun:
      return dsrun_memory(inputs, load);
  }
  return {};
}

}  // namespace

double bucket_elements(const CostInputs& inputs, const RankLoad& load, double parameters) {
  const double bytes = load.shards.gradient_bucket_bytes;
  const double elements = bytes > 0 ? bytes / inputs.reduction_bytes : inputs.memory.bucket_elements;
  return elements > 0 ? std::min(elements, parameters) : parameters;
}

RankMemory rank_memory(const CostInputs& inputs, const RankLoad& load) {
  RankMemory memory = allocated_memory(inputs, load);
  if (inputs.profile.memory != MemoryRules::dsrun) move_offloaded_states(inputs, load, memory);
  offload_activations(load.shards.offload.activations, memory);
  memory.of(MemoryClass::allocator_slack) += (inputs.memory.slack - 1) * memory.allocated();
  memory.of(MemoryClass::framework_context) = inputs.memory.context_bytes;
  memory.of(MemoryClass::communicator_buffers) = inputs.memory.communicator_bytes;
  return memory;
}

}  // namespace cost_models
