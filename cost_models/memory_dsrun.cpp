// This project's runtime: LibTorch modules in eager execution, flat gradient buckets, AdamW moments in fp32.
//
// A layer keeps, for each token: its input and the two norm outputs and the residual between the halves (4h),
// q, k, v and the attention output, the FFN's inner product and the activation's result, the norms'
// statistics and the attention's log-sum-exp; unfused attention keeps the softmax of the scores in place of
// the latter, and needs a gradient of its size in backward. The loss turns the logits into their gradient in
// place.
#include <algorithm>

#include "cost_models/memory_rules.h"
#include "cost_models/whole_buffers.h"

namespace cost_models {
namespace {

using specs::MemoryClass;

LayerActivations eager_layer(const CostInputs& inputs, double t, double s) {
  const ModelSizes& sizes = inputs.sizes;
  const double b = inputs.element_bytes;
  const double statistics = inputs.model.normalization == specs::Normalization::layer_norm ? 2 * b : b;
  const double query = sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  LayerActivations layer;
  layer.layer_input = b * sizes.hidden / s;
  layer.attention = 2 * layer.layer_input + statistics + b * (2 * query + 2 * key) / t + 4 * sizes.heads / t;
  const double inner = sizes.gate_factor + 1;
  layer.feed_forward = 2 * layer.layer_input + statistics + b * inner * sizes.ffn_hidden / t;
  if (inputs.training.attention == specs::AttentionImplementation::unfused) {
    layer.scores = b * sizes.heads * sizes.sequence / t;
    layer.attention += layer.scores - 4 * sizes.heads / t;
  }
  if (sizes.experts > 0)
    layer.mixture = 2 * layer.layer_input +
                    sizes.top_k * (b * 2 * sizes.hidden + b * inner * sizes.expert_hidden) / s +
                    b * inner * sizes.shared_hidden / t + 12 * sizes.experts / s;
  return layer;
}

/// What the backward pass of a layer needs at once beside what the layers keep, bytes per token.
struct BackwardNeeds {
  double recomputed = 0;
  double temporaries = 0;
  double freed = 0;  ///< of what the layers keep, by then
  double total() const { return recomputed + temporaries - freed; }
};

/// The gradients of the layer's output and of the activation; a gated activation's own gradient needs both
/// inner halves and one more of them.
BackwardNeeds feed_forward_needs(const CostInputs& inputs, double t, double s) {
  const double inner_gradients = inputs.sizes.gate_factor > 1 ? 3 : 1;
  return {.temporaries = inputs.element_bytes *
                         (inputs.sizes.hidden / s + inner_gradients * inputs.sizes.ffn_hidden / t)};
}

/// The scores' gradient, those of the output, of q, k and v, and of the projections; the layer's FFN is done.
BackwardNeeds unfused_attention_needs(const CostInputs& inputs, const LayerActivations& layer, bool selective,
                                      double t) {
  const ModelSizes& sizes = inputs.sizes;
  const double query = sizes.heads * sizes.head_dim;
  const double key = sizes.kv_heads * sizes.head_dim;
  return {.recomputed = selective ? layer.scores : 0,
          .temporaries = layer.scores + inputs.element_bytes * (5 * query + 2 * key) / t,
          .freed = layer.feed_forward};
}

/// What is offloaded has a copy of its own on the host, the weights too where the device has no masters, and
/// the gradients in their own precision; nothing is staged.
void copy_to_host(const CostInputs& inputs, RankMemory& memory) {
  const double moments = inputs.training.optimizer.type == specs::OptimizerKind::adamw ? 2 : 1;
  const double moved =
      memory.host_of(MemoryClass::optimizer_state) / (moments * std::max(4.0, inputs.element_bytes));
  memory.host_of(MemoryClass::master_weights) = std::max(4.0, inputs.element_bytes) * moved;
  memory.host_of(MemoryClass::gradients) = inputs.gradient_bytes * moved;
  memory.host_pinned = 0;
}

/// Bytes that the phases of the backward pass hold beside what is kept: that of the output layer, and that of
/// a layer.
struct PhaseBytes {
  double logits = 0;
  double recomputed = 0;
  double temporaries = 0;
  double freed = 0;  ///< of what the layers keep, in a layer's phase
  double layer() const { return recomputed + temporaries - freed; }
};

void add_phase(const PhaseBytes& phase, bool of_output, RankMemory& memory) {
  if (of_output) {
    memory.of(MemoryClass::logits_and_loss) = phase.logits;
  } else {
    memory.of(MemoryClass::recomputation_working_set) = phase.recomputed;
    memory.of(MemoryClass::workspace) = phase.temporaries;
    memory.of(MemoryClass::activations) -= phase.freed;
  }
}

/// With sharded gradients what is whole differs from unit to unit, while the activations go: the largest sum
/// is the peak.
void add_sharded_peak(const CostInputs& inputs, const RankLoad& load, const PhaseBytes& phase,
                      RankMemory& memory) {
  const std::vector<WholeBuffers> whole = whole_buffers(inputs, load);
  const double layers = static_cast<double>(whole.size()) - 2;
  const double kept = memory.of(MemoryClass::activations) + memory.of(MemoryClass::recomputation_checkpoints);
  std::size_t peak = 0;
  double most = -1;
  const auto share_left = [&](std::size_t place) {
    return place == 0 ? 1 : std::max(0.0, layers + 1 - static_cast<double>(place)) / std::max(1.0, layers);
  };
  for (std::size_t place = 0; place < whole.size(); ++place) {
    const double beside = place == 0 ? phase.logits : phase.layer();
    const double sum =
        kept * share_left(place) + beside + whole[place].gradient_bytes + whole[place].parameter_bytes;
    if (sum <= most) continue;
    most = sum;
    peak = place;
  }
  memory.of(MemoryClass::activations) *= share_left(peak);
  memory.of(MemoryClass::recomputation_checkpoints) *= share_left(peak);
  memory.of(MemoryClass::communication_buckets) = whole[peak].gradient_bytes;
  memory.of(MemoryClass::gathered_parameters) = whole[peak].parameter_bytes;
  add_phase(phase, peak == 0, memory);
}

}  // namespace

RankMemory dsrun_memory(const CostInputs& inputs, const RankLoad& load) {
  const ModelSizes& sizes = inputs.sizes;
  const double t = load.tensor;
  const double s = load.sequence_parallel ? t : 1;
  const double tokens = load_tokens(inputs, load);
  RankMemory memory;
  add_model_states(inputs, load, inputs.element_bytes, inputs.gradient_bytes, memory);
  move_offloaded_states(inputs, load, memory);
  copy_to_host(inputs, memory);
  const LayerActivations layer = eager_layer(inputs, t, s);
  const double in_flight = micro_batches_in_flight(load.pipeline, load.pipeline_rank);
  const KeptActivations kept = kept_activations(layer, load.counts);
  memory.of(MemoryClass::activations) = kept.activations * tokens * in_flight;
  memory.of(MemoryClass::recomputation_checkpoints) = kept.checkpoints * tokens * in_flight;
  const double b = inputs.element_bytes;
  const bool dense = load.counts.mixtures() == 0;
  const double replayed =
      kept.checkpoints > 0 ? layer.attention + (dense ? layer.feed_forward : layer.mixture) : 0;
  BackwardNeeds needs = feed_forward_needs(inputs, t, s);
  if (layer.scores > 0 && dense) {
    constexpr auto mode = static_cast<std::size_t>(specs::Recomputation::selective);
    const BackwardNeeds attention =
        unfused_attention_needs(inputs, layer, load.counts.attention[mode] > 0, t);
    if (attention.total() > needs.total()) needs = attention;
  }
  // A replayed layer frees what it has computed again.
  const double recomputed = (replayed + needs.recomputed - (replayed > 0 ? needs.freed : 0)) * tokens;
  PhaseBytes phase;
  phase.recomputed = recomputed;
  phase.temporaries = needs.temporaries * tokens;
  phase.freed = replayed > 0 ? 0 : needs.freed * tokens;
  if (load.counts.output) {
    const double rows =
        static_cast<double>(padded_vocabulary(inputs.model, static_cast<std::int64_t>(load.output_tensor))) /
        load.output_tensor;
    phase.logits = tokens * b * (rows + 3 * sizes.hidden / s);
  }
  const bool shards_gradients = load.shards.zero.stage >= 2 && load.shards.data * load.shards.context > 1;
  if (shards_gradients)
    add_sharded_peak(inputs, load, phase, memory);
  else
    add_phase(phase, phase.logits > phase.layer(), memory);
  return memory;
}

}  // namespace cost_models
