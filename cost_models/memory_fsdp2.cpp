// Fully sharded data parallelism (torchtitan's FSDP2), and DeepSpeed's ZeRO around Hugging Face modules.
#include <algorithm>

#include "cost_models/memory_rules.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

/// A whole layer of unfused modules, bytes per token: what recomputation rebuilds, and the temporaries of its
/// backward pass.
struct UnfusedLayer {
  double kept = 0;
  double temporaries = 0;
};

UnfusedLayer unfused_layer(const ModelSizes& sizes, const ModuleSplit& split, double s) {
  const double t = split.attention_width, f = split.feed_forward_width;
  const double query = sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  return {
      8 * sizes.hidden / s + (4 * query + 4 * key) / t + 2 * sizes.ffn_hidden * (1 + sizes.gate_factor) / f,
      2 * sizes.hidden / s + 2 * sizes.ffn_hidden * sizes.gate_factor / f};
}

double layer_parameters(const CostInputs& inputs, const ModuleSplit& split) {
  ShardDegrees whole;
  return static_cast<double>(attention_parameters(inputs.model, whole).dense) / split.attention +
         static_cast<double>(feed_forward_parameters(inputs.model, whole).dense) / split.feed_forward;
}

// Per-operator recomputation keeps the results of products and of attention.
double kept_by_operator_policy(const CostInputs& inputs, const ModuleSplit& split, double input) {
  const ModelSizes& sizes = inputs.sizes;
  const double query = sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  const double eager_output = inputs.profile.options.compiled ? 0 : input;
  return input + (4 * query + 2 * key + 4 * sizes.heads) / split.attention_width +
         2 * sizes.ffn_hidden / split.feed_forward_width + eager_output;
}

}  // namespace

RankMemory fsdp2_memory(const CostInputs& inputs, const RankLoad& load) {
  const ModelSizes& sizes = inputs.sizes;
  const StackOptions& options = inputs.profile.options;
  const ModuleSplit& split = load.split;
  const double s = load.sequence_parallel ? split.tensor : 1;
  const double tokens = load_tokens(inputs, load);
  const double shards = load.shards.zero.stage >= 3 ? load.shards.dense_shards(inputs.devices_per_node) : 1;
  const double parameters = static_cast<double>(load.parameters.total());
  const double layer = layer_parameters(inputs, split);
  const double table = sizes.vocabulary * sizes.hidden;
  RankMemory memory;
  memory.of(MemoryClass::parameters) = 4 * parameters / shards;  // fp32, the optimizer's own
  memory.of(MemoryClass::gradients) = 4 * parameters / shards;
  memory.of(MemoryClass::optimizer_state) = 8 * parameters / shards;
  const double tables =
      (load.counts.embedding ? table / split.embedding : 0) + (load.counts.output ? table / split.output : 0);
  if (load.pipeline.ranks > 1) {
    // The default policy does not reshard after forward under a pipeline.
    memory.of(MemoryClass::gathered_parameters) = (shards > 1 ? 2 : 4) * parameters;
    memory.of(MemoryClass::communication_buckets) = shards > 1 ? 4 * parameters : 0;
  } else if (shards > 1) {
    memory.of(MemoryClass::gathered_parameters) = 2 * tables + 4 * layer;  // bf16: the tables and two layers
    memory.of(MemoryClass::communication_buckets) = 4 * layer;             // one layer's fp32 gradient
  } else {
    memory.of(MemoryClass::gathered_parameters) = 2 * parameters;
  }
  const UnfusedLayer unfused = unfused_layer(sizes, split, s);
  const double input = 2 * sizes.hidden / s;
  const double operator_policy = kept_by_operator_policy(inputs, split, input);
  constexpr auto none = static_cast<std::size_t>(specs::Recomputation::none);
  constexpr auto selective = static_cast<std::size_t>(specs::Recomputation::selective);
  constexpr auto full = static_cast<std::size_t>(specs::Recomputation::full);
  const auto& layers = load.counts.attention;
  const double selective_bytes =
      load.counts.recomputes(specs::RecomputedModule::element_wise) ? operator_policy : unfused.kept;
  const double in_flight = micro_batches_in_flight(load.pipeline, load.pipeline_rank);
  const double micro_batches = std::min(in_flight, load.pipeline.micro_batches);
  memory.of(MemoryClass::activations) =
      (layers[none] * unfused.kept + layers[selective] * selective_bytes) * micro_batches * tokens;
  memory.of(MemoryClass::recomputation_checkpoints) = layers[full] * input * micro_batches * tokens;
  const double layer_phase = (unfused.kept + unfused.temporaries + (s > 1 ? 2 * sizes.hidden : 0)) * tokens;
  double output_phase = 0;
  if (load.counts.output) {
    const double logit_bytes = options.compiled_loss ? inputs.memory.compiled_loss_bytes_per_logit
                               : split.tensor > 1    ? inputs.memory.parallel_loss_bytes_per_logit
                                                     : inputs.memory.eager_loss_bytes_per_logit;
    output_phase = tokens * (logit_bytes * sizes.vocabulary / split.logits + 4 * sizes.hidden / s +
                             (s > 1 ? 2 * sizes.hidden : 0));
  }
  memory.of(output_phase > layer_phase ? MemoryClass::logits_and_loss
                                       : MemoryClass::recomputation_working_set) =
      std::max(output_phase, layer_phase);
  return memory;
}

RankMemory deepspeed_memory(const CostInputs& inputs, const RankLoad& load) {
  const ModelSizes& sizes = inputs.sizes;
  const StackOptions& options = inputs.profile.options;
  const double tokens = load_tokens(inputs, load);
  const double parameters = static_cast<double>(load.parameters.total());
  const double table = sizes.vocabulary * sizes.hidden;
  const double reduce_buckets = 2 * 2 * bucket_elements(inputs, load, parameters);
  RankMemory memory;
  add_model_states(inputs, load, 2, 0, memory);
  if (load.shards.zero.stage >= 3) {
    memory.of(MemoryClass::gathered_parameters) =
        4 * table + 4 * layer_parameters(inputs, {}) + (options.fused_linear_cross_entropy ? 4 : 2) * table;
  } else {
    // ZeRO-2 keeps whole 16-bit gradients in practice.
    memory.of(MemoryClass::gradients) = 2 * parameters;
    memory.of(MemoryClass::gathered_parameters) = 2 * table;
  }
  memory.of(MemoryClass::communication_buckets) = reduce_buckets;
  const UnfusedLayer unfused = unfused_layer(sizes, {}, 1);
  const double full = load.counts.attention[static_cast<std::size_t>(specs::Recomputation::full)];
  const double rest = load.counts.attentions() - full;
  memory.of(MemoryClass::activations) = rest * unfused.kept * tokens;
  memory.of(MemoryClass::recomputation_checkpoints) = full * 2 * sizes.hidden * tokens;
  // The fused linear loss works through 1/32 of the tokens at a time. Beside its table it holds the table's
  // gradient, the product of a slice with its fp32 copy to add, and what the reduction flattens: 10 bytes an
  // element.
  const bool fused_loss = options.fused_linear_cross_entropy;
  const double logit_bytes = fused_loss ? 20.0 / 32 : 20;
  const double output_phase =
      (sizes.vocabulary * logit_bytes + (fused_loss ? 16 : 4) * sizes.hidden) * tokens +
      (fused_loss ? 10 * table : 0);
  const double working_set = full > 0 ? unfused.kept * tokens : 0;
  const double layer_phase = working_set + (unfused.temporaries + 2 * sizes.hidden) * tokens;
  if (output_phase > layer_phase) {
    memory.of(MemoryClass::logits_and_loss) = output_phase;
  } else {
    memory.of(MemoryClass::recomputation_working_set) = working_set;
    memory.of(MemoryClass::workspace) = layer_phase - working_set;
  }
  return memory;
}

}  // namespace cost_models
