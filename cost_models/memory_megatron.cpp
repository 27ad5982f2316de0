// Megatron-Core with Transformer Engine, and Megatron-DeepSpeed around the same layers.
//
// The peak is the larger of two moments: the last rank's output layer (logits with their gradient in place),
// and the backward pass of the last layer. Always there: one bf16 dummy weight gradient for each distinct
// weight shape (Transformer Engine returns one to autograd when the real gradient is added to the main
// buffer).
#include <algorithm>
#include <array>

#include "cost_models/memory_rules.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

/// Distinct weight shapes, at most a dozen.
class Shapes {
 public:
  void add(double rows, double columns) {
    for (std::size_t i = 0; i < count_; ++i)
      if (rows_[i] == rows && columns_[i] == columns) return;
    if (count_ == rows_.size()) return;
    rows_[count_] = rows;
    columns_[count_++] = columns;
  }
  double elements() const {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += rows_[i] * columns_[i];
    return sum;
  }

 private:
  std::array<double, 12> rows_{}, columns_{};
  std::size_t count_ = 0;
};

double dummy_gradient_bytes(const ModelSizes& sizes, const ModuleSplit& split, bool dense, bool mixture) {
  const double t = split.attention, f = split.feed_forward;
  Shapes shapes;
  const double h = sizes.hidden;
  if (sizes.latent) {
    const double query = sizes.heads * sizes.query_key_dim / t;
    const double content = sizes.query_key_dim - sizes.rotary_head_dim;
    if (sizes.query_rank > 0) {
      shapes.add(sizes.query_rank, h);
      shapes.add(query, sizes.query_rank);
    } else {
      shapes.add(query, h);
    }
    shapes.add(sizes.key_value_rank + sizes.rotary_head_dim, h);
    shapes.add(sizes.heads * (content + sizes.value_dim) / t, sizes.key_value_rank);
    shapes.add(h, sizes.heads * sizes.value_dim / t);
  } else {
    shapes.add((sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim / t, h);
    shapes.add(h, sizes.heads * sizes.head_dim / t);
  }
  if (dense) {
    shapes.add(sizes.gate_factor * sizes.ffn_hidden / f, h);
    shapes.add(h, sizes.ffn_hidden / f);
  }
  if (mixture) {
    shapes.add(sizes.gate_factor * sizes.expert_hidden, h);
    shapes.add(h, sizes.expert_hidden);
    if (sizes.shared_hidden > 0) {
      shapes.add(sizes.gate_factor * sizes.shared_hidden / f, h);
      shapes.add(h, sizes.shared_hidden / f);
    }
  }
  return 2 * shapes.elements();
}

bool counts_selective(const UnitCounts& counts) {
  constexpr auto selective = static_cast<std::size_t>(specs::Recomputation::selective);
  return counts.attention[selective] + counts.feed_forward[selective] + counts.mixture[selective] > 0;
}

// Module-wise recomputation of Megatron-Core drops what the named modules keep.
void drop_recomputed_modules(const CostInputs& inputs, const UnitCounts& counts, const ModuleSplit& split,
                             double s, LayerActivations& layer) {
  const ModelSizes& sizes = inputs.sizes;
  using specs::RecomputedModule;
  if (counts.recomputes(RecomputedModule::latent_up_projection))
    layer.attention -=
        (4 * sizes.heads * sizes.query_key_dim + 2 * sizes.heads * sizes.value_dim) / split.attention_width;
  if (counts.recomputes(RecomputedModule::expert_activation))
    layer.mixture -= 2 * sizes.top_k * sizes.expert_hidden / s;
  if (counts.recomputes(RecomputedModule::normalization)) {
    layer.attention -= 2 * sizes.hidden / s;
    layer.feed_forward -= 2 * sizes.hidden / s;
    layer.mixture -= 2 * sizes.hidden / s;
  }
  if (counts.recomputes(RecomputedModule::feed_forward))
    layer.feed_forward -= 2 * sizes.ffn_hidden * (1 + sizes.gate_factor) / split.feed_forward_width;
}

}  // namespace

RankMemory megatron_core_memory(const CostInputs& inputs, const RankLoad& load) {
  const ModelSizes& sizes = inputs.sizes;
  const MemoryConstants& constants = inputs.memory;
  const StackOptions& options = inputs.profile.options;
  const ModuleSplit& split = load.split;
  const double s = load.sequence_parallel ? split.tensor : 1;
  const double tokens = load_tokens(inputs, load);
  RankMemory memory;
  add_model_states(inputs, load, inputs.element_bytes, inputs.gradient_bytes, memory);
  LayerActivations layer = layer_activations(inputs, split, s, load.shards.context);
  LayerActivations whole = layer;
  if (counts_selective(load.counts)) drop_recomputed_modules(inputs, load.counts, split, s, layer);
  const double in_flight = micro_batches_in_flight(load.pipeline, load.pipeline_rank);
  const KeptActivations kept = kept_activations(layer, load.counts);
  memory.of(MemoryClass::activations) = kept.activations * in_flight * tokens;
  memory.of(MemoryClass::recomputation_checkpoints) = kept.checkpoints * in_flight * tokens;

  const bool mixture = load.counts.mixtures() > 0;
  const double dummies = inputs.profile.accumulates_in_gemm_buffers && inputs.profile.transformer_engine
                             ? dummy_gradient_bytes(sizes, split, load.counts.feed_forwards() > 0, mixture)
                             : 0;
  const double output_dummy = load.counts.output && inputs.profile.transformer_engine
                                  ? 2 * sizes.vocabulary * sizes.hidden / split.output
                                  : 0;
  memory.of(MemoryClass::workspace) = constants.workspace_bytes + dummies;
  // A recomputed layer is whole again while its backward pass runs.
  const double recomputed =
      kept.checkpoints > 0
          ? load.counts.checkpoint_layers * (whole.attention + (mixture ? whole.mixture : whole.feed_forward))
          : 0;
  const double backward_temporaries =
      mixture ? (constants.mixture_backward_copies * sizes.top_k + 1) * 2 * sizes.hidden / s
              : 2 * sizes.hidden / s + 2 * sizes.ffn_hidden * sizes.gate_factor / split.feed_forward_width +
                    (s > 1 ? 4 * sizes.hidden : 0);
  const double layer_phase = (recomputed + backward_temporaries) * tokens + output_dummy;
  double output_phase = 0;
  if (load.counts.output) {
    const double logit_bytes = options.fused_cross_entropy ? 2 : constants.loss_bytes_per_logit;
    output_phase = (options.fused_cross_entropy ? output_dummy : 0) +
                   tokens * (logit_bytes * sizes.vocabulary / split.logits + 4 * sizes.hidden / s +
                             2 * sizes.hidden + (s > 1 ? 2 * sizes.hidden : 0));
  }
  if (output_phase > layer_phase) {
    memory.of(MemoryClass::logits_and_loss) = output_phase;
  } else {
    memory.of(MemoryClass::recomputation_working_set) = recomputed * tokens;
    memory.of(MemoryClass::workspace) += backward_temporaries * tokens + output_dummy;
  }
  return memory;
}

// BigScience. ZeRO-1 in fp16: weights and gradients in 16 bits, and of its own share gradients in 16 bits and
// fp32, master weights and moments, 4 + 18/shards bytes. The bf16 optimizer: weights in 16 bits in the module
// and flat, gradients in 16 bits and fp32, 10 + 12/shards. States are allocated once and leave no gaps;
// activations of other sizes come and go between them, and the allocator keeps `activation_slack` times what
// they need. The working set of one layer lies in those gaps where they are large enough: the measured memory
// does not depend on the number of heads.
RankMemory megatron_deepspeed_memory(const CostInputs& inputs, const RankLoad& load) {
  const ModelSizes& sizes = inputs.sizes;
  const double t = load.split.attention_width;
  const double tokens = load_tokens(inputs, load);
  RankMemory memory;
  const double parameters = static_cast<double>(load.parameters.total());
  const double shards = load.shards.dense_shards(inputs.devices_per_node);
  const bool fp32_gradients = inputs.gradient_bytes > 2;
  memory.of(MemoryClass::parameters) = (fp32_gradients ? 4 : 2) * parameters;
  memory.of(MemoryClass::gradients) =
      fp32_gradients ? 6 * parameters : 2 * parameters + 6 * parameters / shards;
  memory.of(MemoryClass::optimizer_state) = 8 * parameters / shards;
  memory.of(MemoryClass::master_weights) = 4 * parameters / shards;
  const double in_flight = micro_batches_in_flight(load.pipeline, load.pipeline_rank);
  const LayerActivations layer = layer_activations(inputs, load.split, 1, load.shards.context);
  const KeptActivations kept = kept_activations(layer, load.counts);
  memory.of(MemoryClass::activations) = kept.activations * tokens * in_flight;
  memory.of(MemoryClass::recomputation_checkpoints) = kept.checkpoints * tokens * in_flight;
  memory.of(MemoryClass::communication_buckets) = 2 * 2 * bucket_elements(inputs, load, parameters);
  const double scores = sizes.heads / t * sizes.sequence * tokens;
  const double f = load.split.feed_forward_width;
  const double working_set =
      tokens * (10 * sizes.hidden + 8 * sizes.hidden / t + 16 * sizes.hidden / f) + 5 * scores;
  const double temporaries = tokens * 8 * sizes.hidden / f + 4 * scores;
  const double output_phase =
      load.counts.output ? tokens * (10 * sizes.vocabulary / load.split.logits + 6 * sizes.hidden) : 0;
  if (output_phase > working_set + temporaries) {
    memory.of(MemoryClass::logits_and_loss) = output_phase;
  } else {
    memory.of(MemoryClass::recomputation_working_set) = kept.checkpoints > 0 ? working_set : 0;
    memory.of(MemoryClass::workspace) = temporaries;
  }
  const double kept_bytes = (kept.activations + kept.checkpoints) * tokens * in_flight;
  const double gaps = (inputs.memory.activation_slack - 1) * kept_bytes;
  const double in_gaps =
      memory.of(MemoryClass::recomputation_working_set) + memory.of(MemoryClass::workspace);
  memory.of(MemoryClass::allocator_slack) = std::max(0.0, gaps - in_gaps);
  return memory;
}

}  // namespace cost_models
