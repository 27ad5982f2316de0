// Fully sharded data parallelism (torchtitan's FSDP2), and DeepSpeed's ZeRO around Hugging Face modules.
#include <algorithm>

#include "cost_models/memory_rules.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

/// The halves of a layer of unfused modules, bytes per token: what recomputation rebuilds, and the
/// temporaries of its backward pass. A mixture keeps what its routed tokens pass.
struct UnfusedLayer {
  double attention = 0;
  double feed_forward = 0;
  double mixture = 0;
  double temporaries = 0;
  double of(const UnitCounts& counts, specs::Recomputation mode) const {
    const auto index = static_cast<std::size_t>(mode);
    return counts.attention[index] * attention + counts.feed_forward[index] * feed_forward +
           counts.mixture[index] * mixture;
  }
  double whole(const UnitCounts& counts) const {
    return attention +
           std::max(counts.feed_forwards() > 0 ? feed_forward : 0, counts.mixtures() > 0 ? mixture : 0);
  }
};

UnfusedLayer unfused_layer(const CostInputs& inputs, const RankLoad& load, const ModuleSplit& split,
                           double s) {
  const ModelSizes& sizes = inputs.sizes;
  const double t = split.attention_width, f = split.feed_forward_width;
  const double query = sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  return {.attention = 4 * sizes.hidden / s + (4 * query + 4 * key) / t,
          .feed_forward = 4 * sizes.hidden / s + 2 * sizes.ffn_hidden * (1 + sizes.gate_factor) / f,
          .mixture = layer_activations(inputs, split, s, load.shards.context).mixture,
          .temporaries = 2 * sizes.hidden / s + 2 * sizes.ffn_hidden * sizes.gate_factor / f};
}

/// Of the largest layer here, its part of the routed experts included.
double layer_parameters(const CostInputs& inputs, const RankLoad& load, const ModuleSplit& split) {
  ShardDegrees whole;
  const double attention =
      static_cast<double>(attention_parameters(inputs.model, whole).dense) / split.attention;
  double feed_forward = 0;
  if (load.counts.feed_forwards() > 0)
    feed_forward =
        static_cast<double>(feed_forward_parameters(inputs.model, whole).dense) / split.feed_forward;
  if (load.counts.mixtures() > 0) {
    const RankParameters mixture = mixture_parameters(inputs.model, whole);
    feed_forward = std::max(feed_forward, static_cast<double>(mixture.dense) / split.feed_forward +
                                              static_cast<double>(mixture.expert) /
                                                  (load.shards.expert * load.shards.expert_tensor));
  }
  return attention + feed_forward;
}

/// Parameters that the rank owns, where `sharded`: dense and routed ones are shared out among other ranks.
double owned_parameters(const CostInputs& inputs, const RankLoad& load, bool sharded) {
  if (!sharded) return static_cast<double>(load.parameters.total());
  return static_cast<double>(load.parameters.dense) / load.shards.dense_shards(inputs.devices_per_node) +
         static_cast<double>(load.parameters.expert) / load.shards.expert_shards(inputs.devices_per_node);
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
  // Between the steps everything is sharded from ZeRO-2 on: ZeRO-3 drops gathered parameters after each use,
  // ZeRO-2 (reshard_after_forward off) keeps them from the forward to the backward pass.
  const bool keeps_gathered = load.shards.zero.stage < 3;
  const bool sharded = load.shards.zero.stage >= 2 && load.shards.dense_shards(inputs.devices_per_node) > 1;
  const double parameters = static_cast<double>(load.parameters.total());
  const double owned = owned_parameters(inputs, load, sharded);
  const double layer = layer_parameters(inputs, load, split);
  const double table = sizes.vocabulary * sizes.hidden;
  RankMemory memory;
  memory.of(MemoryClass::parameters) = 4 * owned;  // fp32, the optimizer's own
  memory.of(MemoryClass::gradients) = 4 * owned;
  memory.of(MemoryClass::optimizer_state) = 8 * owned;
  const double tables =
      (load.counts.embedding ? table / split.embedding : 0) + (load.counts.output ? table / split.output : 0);
  if (load.pipeline.ranks > 1) {
    // Gradients stay whole, too, until the last micro-batch.
    memory.of(MemoryClass::gathered_parameters) = (sharded ? 2 : 4) * parameters;
    memory.of(MemoryClass::communication_buckets) = sharded ? 4 * parameters : 0;
  } else {
    // In bf16 all of them, or the tables and two layers; and one layer's fp32 gradient.
    memory.of(MemoryClass::gathered_parameters) = keeps_gathered ? 2 * parameters : 2 * tables + 4 * layer;
    memory.of(MemoryClass::communication_buckets) = sharded ? 4 * layer : 0;
  }
  const UnfusedLayer unfused = unfused_layer(inputs, load, split, s);
  const double input = 2 * sizes.hidden / s;
  const double operator_policy = kept_by_operator_policy(inputs, split, input);
  constexpr auto selective = static_cast<std::size_t>(specs::Recomputation::selective);
  constexpr auto full = static_cast<std::size_t>(specs::Recomputation::full);
  const auto& layers = load.counts.attention;
  const double selective_bytes = load.counts.recomputes(specs::RecomputedModule::element_wise)
                                     ? layers[selective] * operator_policy
                                     : unfused.of(load.counts, specs::Recomputation::selective);
  const double in_flight = micro_batches_in_flight(load.pipeline, load.pipeline_rank);
  const double micro_batches = std::min(in_flight, load.pipeline.micro_batches);
  memory.of(MemoryClass::activations) =
      (unfused.of(load.counts, specs::Recomputation::none) + selective_bytes) * micro_batches * tokens;
  memory.of(MemoryClass::recomputation_checkpoints) = layers[full] * input * micro_batches * tokens;
  const double layer_phase =
      (unfused.whole(load.counts) + unfused.temporaries + (s > 1 ? 2 * sizes.hidden : 0)) * tokens;
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
    memory.of(MemoryClass::gathered_parameters) = 4 * table + 4 * layer_parameters(inputs, load, {}) +
                                                  (options.fused_linear_cross_entropy ? 4 : 2) * table;
    // Its own part of the 16-bit gradients; those of an offloaded optimizer accumulate on the host.
    const specs::OffloadTreatment& optimizer = load.shards.offload.optimizer;
    const double offloaded =
        optimizer.device == specs::OffloadDevice::none ? 0.0 : static_cast<double>(optimizer.eighths) / 8;
    memory.of(MemoryClass::gradients) = 2 * (1 - offloaded) * owned_parameters(inputs, load, true);
  } else {
    // ZeRO-2 keeps whole 16-bit gradients in practice.
    memory.of(MemoryClass::gradients) = 2 * parameters;
    memory.of(MemoryClass::gathered_parameters) = load.counts.embedding || load.counts.output ? 2 * table : 0;
  }
  memory.of(MemoryClass::communication_buckets) = reduce_buckets;
  const UnfusedLayer unfused = unfused_layer(inputs, load, {}, 1);
  const double full = load.counts.attention[static_cast<std::size_t>(specs::Recomputation::full)];
  const double in_flight =
      std::min(micro_batches_in_flight(load.pipeline, load.pipeline_rank), load.pipeline.micro_batches);
  memory.of(MemoryClass::activations) = (unfused.of(load.counts, specs::Recomputation::none) +
                                         unfused.of(load.counts, specs::Recomputation::selective)) *
                                        in_flight * tokens;
  memory.of(MemoryClass::recomputation_checkpoints) = full * 2 * sizes.hidden * in_flight * tokens;
  // The fused linear loss works through 1/32 of the tokens at a time. Beside its table it holds the table's
  // gradient, the product of a slice with its fp32 copy to add, and what the reduction flattens: 10 bytes an
  // element.
  const bool fused_loss = options.fused_linear_cross_entropy;
  const double logit_bytes = fused_loss ? 20.0 / 32 : 20;
  const double output_phase =
      load.counts.output ? (sizes.vocabulary * logit_bytes + (fused_loss ? 16 : 4) * sizes.hidden) * tokens +
                               (fused_loss ? 10 * table : 0)
                         : 0;
  const double working_set = full > 0 ? unfused.whole(load.counts) * tokens : 0;
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
