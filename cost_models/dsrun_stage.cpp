#include "cost_models/dsrun_stage.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cost_models/memory_rules.h"
#include "cost_models/whole_buffers.h"

namespace cost_models {

double sum(const ClassBytes& bytes) {
  double total = 0;
  for (const double value : bytes) total += value;
  return total;
}

ClassBytes& add(ClassBytes& bytes, const ClassBytes& other, double times) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += times * other[i];
  return bytes;
}

namespace {

using specs::MemoryClass;
using specs::Recomputation;

double& of(ClassBytes& bytes, MemoryClass memory_class) {
  return bytes[static_cast<std::size_t>(memory_class)];
}

/// Half a layer.
struct Half {
  bool attention = false;
  Recomputation mode = Recomputation::none;
  std::size_t layer = 0;  ///< of those that the chunk touches
};

double at_mode(const ModeCounts& counts, Recomputation mode) {
  return counts[static_cast<std::size_t>(mode)];
}

/// The halves of a chunk. Counts tell no order but this one: the recomputed layers stand first.
std::vector<Half> halves_of(const UnitCounts& counts, std::size_t chunk, double chunks) {
  const auto share = [&](double count) {
    const auto index = static_cast<double>(chunk);
    return static_cast<std::int64_t>(std::floor(count * (index + 1) / chunks) -
                                     std::floor(count * index / chunks));
  };
  struct Left {
    std::int64_t full, selective, all;
    Recomputation next() {
      --all;
      if (full-- > 0) return Recomputation::full;
      return selective-- > 0 ? Recomputation::selective : Recomputation::none;
    }
  };
  Left attention{share(at_mode(counts.attention, Recomputation::full)),
                 share(at_mode(counts.attention, Recomputation::selective)), share(counts.attentions())};
  Left others{
      share(at_mode(counts.feed_forward, Recomputation::full) + at_mode(counts.mixture, Recomputation::full)),
      share(at_mode(counts.feed_forward, Recomputation::selective) +
            at_mode(counts.mixture, Recomputation::selective)),
      share(counts.feed_forwards() + counts.mixtures())};
  bool attends = attention.all > others.all || (attention.all == others.all && !counts.begins_in_layer);
  std::vector<Half> halves;
  std::size_t layer = 0;
  while (attention.all + others.all > 0) {
    Left& kind = (attends && attention.all > 0) || others.all == 0 ? attention : others;
    const bool is_attention = &kind == &attention;
    if (is_attention && !halves.empty()) ++layer;
    halves.push_back({is_attention, kind.next(), layer});
    attends = !is_attention;
  }
  return halves;
}

/// Bytes of one micro-batch's tensors on one rank.
struct TensorBytes {
  TensorBytes(const CostInputs& inputs, const RankLoad& load) {
    const ModelSizes& sizes = inputs.sizes;
    const double tokens = load_tokens(inputs, load);
    const double b = inputs.element_bytes;
    const double wide = std::max(4.0, b);
    const ModuleSplit& split = load.split;
    const double t = split.tensor, a = split.attention_width, f = split.feed_forward_width;
    scattered = load.sequence_parallel && t > 1;
    const double s = scattered ? t : 1;
    whole = tokens * b * sizes.hidden;
    stream = whole / s;
    query = tokens * b * sizes.heads * sizes.head_dim / a;
    const double kv_heads = std::max(sizes.kv_heads / split.attention, 1.0);
    key = tokens * b * kv_heads * sizes.head_dim * split.attention / a;
    shares_keys = sizes.heads / split.attention > kv_heads;
    if (shares_keys && kv_heads > 1) expanded = 2 * query;
    const double width = sizes.experts > 0 && sizes.ffn_hidden == 0
                             ? sizes.top_k * sizes.expert_hidden + sizes.shared_hidden
                             : sizes.ffn_hidden;
    inner = tokens * b * width / f;
    products = sizes.gate_factor * inner;
    const bool layer_norm = inputs.model.normalization == specs::Normalization::layer_norm;
    norm_gradients = sizes.hidden * (layer_norm ? 4 * b : 2 * wide);
    statistics = tokens / s * (layer_norm ? 2 * b : wide);
    log_sum_exp = tokens * wide * sizes.heads / a;
    scores = tokens * b * sizes.heads * sizes.sequence / a;
    wide_over_own = wide / b;
    block_share = std::min(1.0, 64 / sizes.sequence);
    token_parallel = split.token_parallel_output && t > 1;
    const double rows =
        static_cast<double>(padded_vocabulary(inputs.model, static_cast<std::int64_t>(split.output))) /
        split.output;
    logits = (token_parallel ? tokens / t : tokens) * rows * b;
    logits_input = token_parallel ? whole / t : whole;
    const double g = inputs.gradient_bytes;
    if (scattered) partial_gradients = g * sizes.hidden * (layer_norm ? 2 : 1);
    // Wide gradients of biases are summed in place.
    const double bias = g < wide ? g : 0;
    if (inputs.model.feed_forward.bias) {
      down_bias = bias * sizes.hidden;
      up_bias = bias * sizes.gate_factor * width / split.feed_forward;
    }
    if (inputs.model.attention.output_bias) attention_bias = bias * sizes.hidden;
  }

  bool scattered = false;  ///< the stream between the parallel layers, over the tensor axis
  bool shares_keys = false;
  bool token_parallel = false;
  double whole = 0;   ///< [tokens, hidden]
  double stream = 0;  ///< as it lies between the units
  double query = 0, key = 0;
  double expanded = 0;  ///< copies of keys and values for each query head; of a single head they are views
  double inner = 0, products = 0;
  double statistics = 0, log_sum_exp = 0, scores = 0;
  double wide_over_own = 1;  ///< an element of what is computed in fp32 over one of the tensors
  double block_share = 1;    ///< of the queries, that blockwise attention takes at a time
  double logits = 0, logits_input = 0;
  /// Gradients of biases and norms before they are added, of norms with the sums that they are made of:
  /// small, but they decide between moments that are else equal.
  double down_bias = 0, up_bias = 0, attention_bias = 0, norm_gradients = 0;
  double partial_gradients = 0;  ///< of a norm, each rank's from its own tokens
};

class StageWalk {
 public:
  StageWalk(const CostInputs& inputs, const RankLoad& load, std::size_t chunk, bool defers)
      : sizes_(inputs, load),
        defers_(defers),
        unfused_(inputs.training.attention == specs::AttentionImplementation::unfused),
        drops_(inputs.training.dropout > 0),
        drops_weights_(inputs.training.attention_dropout > 0),
        checkpoint_layers_(static_cast<std::size_t>(std::max(1.0, load.counts.checkpoint_layers))),
        halves_(load.chunks.empty() ? halves_of(load.counts, chunk, load.pipeline.virtual_stages)
                                    : halves_of(load.chunks[chunk], 0, 1)) {
    const double chunks = load.pipeline.virtual_stages;
    embeds_ = load.counts.embedding && chunk == 0;
    outputs_ = load.counts.output && static_cast<double>(chunk) == chunks - 1;
    const bool whole_model = load.counts.embedding && load.counts.output && chunks == 1;
    if (whole_model && load.shards.zero.stage >= 2 && load.shards.data * load.shards.context > 1)
      whole_.emplace(inputs, load);
  }

  StageHoldings run() {
    result_.boundary_bytes = sizes_.stream;
    forward();
    backward();
    return result_;
  }

 private:
  /// A run of halves that are recomputed together, or one that is not.
  struct Group {
    std::size_t begin = 0, end = 0;
    bool recomputed = false;
    MemoryClass input = MemoryClass::activations;  ///< class of its x
  };

  std::size_t layers() const { return halves_.empty() ? 0 : halves_.back().layer + 1; }

  double half_keeps(const Half& half) const {
    const double norm = sizes_.stream + sizes_.statistics;
    if (!half.attention) return norm + sizes_.products + sizes_.inner;
    const double weights =
        unfused_ ? (half.mode == Recomputation::selective ? 0 : sizes_.scores) : sizes_.log_sum_exp;
    return norm + 2 * sizes_.query + 2 * sizes_.key + weights;
  }

  void cut_groups() {
    for (std::size_t begin = 0; begin < halves_.size();) {
      Group group{begin, begin + 1, halves_[begin].mode == Recomputation::full, stream_class_};
      if (group.recomputed) {
        const std::size_t layers = halves_[begin].layer + checkpoint_layers_;
        while (group.end < halves_.size() && halves_[group.end].mode == Recomputation::full &&
               halves_[group.end].layer < layers)
          ++group.end;
      }
      stream_class_ = group.recomputed ? MemoryClass::recomputation_checkpoints : MemoryClass::activations;
      groups_.push_back(group);
      begin = group.end;
    }
  }

  void forward() {
    cut_groups();
    ClassBytes& kept = result_.kept;
    for (const Group& group : groups_) {
      of(kept, group.input) += sizes_.stream;
      if (!group.recomputed) of(kept, MemoryClass::activations) += half_keeps(halves_[group.begin]);
    }
    // The stream as it was before the embedding's dropout is a leaf of its own.
    if (embeds_ && drops_) of(kept, MemoryClass::activations) += sizes_.stream;
    if (outputs_) {
      of(kept, stream_class_) += sizes_.stream;
      of(kept, MemoryClass::activations) += sizes_.stream + sizes_.statistics;
      of(kept, MemoryClass::logits_and_loss) += sizes_.logits;
    }
    result_.forward = kept;
    of(result_.forward, MemoryClass::activations) +=
        outputs_ ? (gathers_logits_input() ? sizes_.whole : 0) : sizes_.stream + beside_result();
    result_.output_class = stream_class_;
  }

  /// What stands beside the result of a half when its forward pass ends: the last product, and what dropout
  /// makes of it; of a product that is scattered the whole, before its share and the result are there.
  double beside_result() const {
    const double dropped = drops_ ? sizes_.stream : 0;
    return sizes_.scattered ? std::max(sizes_.whole, sizes_.stream + dropped) : sizes_.whole + dropped;
  }

  bool gathers_logits_input() const { return sizes_.scattered && !sizes_.token_parallel; }

  // Backward. `now_` is what is held beside the step that is looked at.

  /// `message`: with gradients that are complete, for those that are summed over the tensor axis.
  void note(double workspace, double message = 0) {
    ClassBytes bytes = now_;
    of(bytes, MemoryClass::workspace) += workspace;
    if (whole_) {
      of(bytes, MemoryClass::communication_buckets) += whole_->gradient_bytes();
      of(bytes, MemoryClass::gathered_parameters) += whole_->parameter_bytes(place_);
    }
    if (const double total = sum(bytes); total > most_) {
      most_ = total;
      result_.backward = bytes;
    }
    of(bytes, MemoryClass::communication_buckets) += message;
    if (const double total = sum(bytes); total > most_of_last_) {
      most_of_last_ = total;
      result_.last_backward = bytes;
    }
  }

  /// The same while a weight gradient is added, and before: its bucket may be opened for it.
  void contribute(BlockRole role, double workspace) {
    // The norm before a half is small, and travels with the last linear layer of the half before.
    const bool ends_bucket = role == BlockRole::down || role == BlockRole::attention_output;
    note(workspace, ends_bucket ? sizes_.partial_gradients : 0);
    if (!whole_) return;
    whole_->open(place_, role);
    note(workspace);
    whole_->complete(place_, role);
  }

  void free(MemoryClass memory_class, double bytes) { of(now_, memory_class) -= bytes; }
  /// Held on until the weight gradient is computed.
  void defer(MemoryClass memory_class, double bytes) {
    if (!defers_) return;
    of(now_, memory_class) += bytes;
    of(result_.deferred, memory_class) += bytes;
  }

  void backward() {
    now_ = result_.kept;
    if (outputs_) backward_of_output();
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      if (group->recomputed) replay(*group);
      for (std::size_t i = group->end; i-- > group->begin;) {
        const Half& half = halves_[i];
        place_ = layers() - half.layer;
        const MemoryClass memory_class =
            group->recomputed ? MemoryClass::recomputation_working_set : MemoryClass::activations;
        half.attention ? backward_of_attention(half, memory_class) : backward_of_feed_forward(memory_class);
        if (i > group->begin) free(memory_class, sizes_.stream);  // its x, of the replay
        new_gradient();
      }
      if (group->recomputed) end_replay();
      free(group->input, sizes_.stream);
    }
    if (!embeds_) return;
    place_ = layers() + 1;
    defer(MemoryClass::workspace, sizes_.stream);
    contribute(BlockRole::positions, 0);
    contribute(BlockRole::embedding_table, sizes_.scattered ? sizes_.whole : 0);
  }

  /// For the last linear layer's weight gradient, which reads it where no dropout stands between.
  bool gradient_waits() const { return defers_ && !drops_; }

  /// The gradient of the stream is summed in its place, unless somebody else still holds it: whoever called
  /// the backward pass of a stage or of a replay, or a weight gradient that waits.
  void new_gradient() {
    if (gradient_waits())
      of(result_.deferred, arrived_gradient_ ? MemoryClass::communication_buckets : MemoryClass::workspace) +=
          sizes_.stream;
    if (gradient_waits() || lent_gradient_) of(now_, MemoryClass::workspace) += sizes_.stream;
    lent_gradient_ = arrived_gradient_ = false;
  }

  void replay(const Group& group) {
    double bytes = sizes_.stream;  // the result
    for (std::size_t i = group.begin; i < group.end; ++i)
      bytes += half_keeps(halves_[i]) + (i > group.begin ? sizes_.stream : 0);
    of(now_, MemoryClass::recomputation_working_set) += bytes + beside_result();
    place_ = layers() - halves_[group.end - 1].layer;
    note(0);
    free(MemoryClass::recomputation_working_set, beside_result());
    outer_gradient_lent_ = lent_gradient_;
    lent_gradient_ = true;
  }

  void end_replay() {
    free(MemoryClass::recomputation_working_set, sizes_.stream);
    // The gradient that came in goes, unless it is the caller's.
    if (!outer_gradient_lent_ && !gradient_waits()) free(MemoryClass::workspace, sizes_.stream);
  }

  void backward_of_output() {
    lent_gradient_ = arrived_gradient_ = false;
    place_ = 0;
    const double gathered = gathers_logits_input() ? sizes_.whole : 0;
    const double share = gathers_logits_input() ? sizes_.stream : 0;
    const double spread = sizes_.token_parallel && !sizes_.scattered ? sizes_.whole : 0;
    contribute(BlockRole::output_table, gathered + sizes_.logits_input + std::max(share, spread));
    free(MemoryClass::logits_and_loss, sizes_.logits);
    free(MemoryClass::activations, sizes_.stream);
    defer(MemoryClass::logits_and_loss, sizes_.logits);
    defer(gathered > 0 ? MemoryClass::workspace : MemoryClass::activations,
          gathered > 0 ? gathered : sizes_.stream);
    contribute(BlockRole::output_norm, 2 * sizes_.stream + sizes_.norm_gradients);
    free(MemoryClass::activations, sizes_.statistics);
    free(stream_class_, sizes_.stream);
    of(now_, MemoryClass::workspace) += sizes_.stream;
    place_ = 1;
  }

  /// The linear layer at the end of a half, with the gradient of its input beside.
  void backward_of_last_linear(BlockRole role, double input, double bias) {
    const double gathered = sizes_.scattered ? sizes_.whole : 0;
    contribute(role, (drops_ ? sizes_.stream : 0) + gathered + input + bias);
    defer(MemoryClass::workspace, gathered + (drops_ ? sizes_.stream : 0));
  }

  /// What the linear layer at the end of a half has saved goes, or waits with its weight gradient.
  void leave_input(MemoryClass memory_class, double input) {
    free(memory_class, input);
    defer(memory_class, input);
  }

  /// The linear layer at the beginning of a half, and its norm.
  void backward_of_first_linear(BlockRole role, BlockRole norm, double output_gradient, double bias,
                                MemoryClass memory_class) {
    const double gathered = sizes_.scattered ? sizes_.whole : 0;
    const double share = sizes_.scattered ? sizes_.stream : 0;
    contribute(role, output_gradient + gathered + sizes_.whole + std::max(share, bias));
    defer(MemoryClass::workspace, output_gradient + gathered);
    free(memory_class, sizes_.stream);
    if (!sizes_.scattered) defer(memory_class, sizes_.stream);
    contribute(norm, 2 * sizes_.stream + sizes_.norm_gradients);
    free(memory_class, sizes_.statistics);
  }

  void backward_of_feed_forward(MemoryClass memory_class) {
    backward_of_last_linear(BlockRole::down, sizes_.inner, sizes_.down_bias);
    leave_input(memory_class, sizes_.inner);
    note(sizes_.inner + sizes_.products);
    free(memory_class, sizes_.products);
    backward_of_first_linear(BlockRole::up, BlockRole::feed_forward_norm, sizes_.products, sizes_.up_bias,
                             memory_class);
  }

  void backward_of_attention(const Half& half, MemoryClass memory_class) {
    backward_of_last_linear(BlockRole::attention_output, sizes_.query, sizes_.attention_bias);
    const double projected = sizes_.query + 2 * sizes_.key;
    if (unfused_) {
      leave_input(memory_class, sizes_.query);
      backward_of_unfused(half, memory_class);
    } else {
      double gradients = sizes_.shares_keys ? 3 * sizes_.query + sizes_.key : projected;
      if (drops_weights_) gradients = std::max(gradients, blockwise_gradients());
      note(sizes_.query + projected + sizes_.expanded + gradients);
      leave_input(memory_class, sizes_.query);  // fused attention has saved its result, too
      free(memory_class, sizes_.log_sum_exp);
    }
    free(memory_class, projected);
    backward_of_first_linear(BlockRole::projections, BlockRole::attention_norm, projected, 0, memory_class);
  }

  /// The gradients of fused attention with dropout while they are computed, those of keys and values in the
  /// wide type. Of a block of queries its weights, those that dropout leaves, their gradient and the sums
  /// over the keys, wide too; then what a product needs beside, or the output and its gradient. 16-bit
  /// operands and results have wide copies, and at the end the gradients are rounded.
  double blockwise_gradients() const {
    const double w = sizes_.wide_over_own;
    const bool rounds = w > 1;
    const double scores = sizes_.block_share * sizes_.scores;
    const double queries = sizes_.block_share * sizes_.query;
    const double product =
        (rounds ? scores : 0) + sizes_.query + std::max(queries, rounds ? w * sizes_.query : 0);
    const double of_output = (rounds ? 3 * w : 1) * queries;
    const double block =
        3 * w * scores + sizes_.block_share * sizes_.log_sum_exp + std::max(product, of_output);
    return (1 + 2 * w) * sizes_.query + std::max(block, rounds ? 2 * sizes_.query : 0);
  }

  /// The gradient of the scores beside those of the values and of the result, the projections' still empty
  /// gradient, and copies of what the products read across heads.
  void backward_of_unfused(const Half& half, MemoryClass memory_class) {
    const bool again = half.mode == Recomputation::selective;
    const double held = 2 * sizes_.query + 2 * sizes_.key + sizes_.expanded;
    if (again) of(now_, MemoryClass::recomputation_working_set) += sizes_.scores;
    note(held + (drops_weights_ ? sizes_.scores : 0) + 2 * sizes_.query);
    note(held + sizes_.scores + 4 * sizes_.query);
    free(again ? MemoryClass::recomputation_working_set : memory_class, sizes_.scores);
  }

  TensorBytes sizes_;
  bool defers_ = false, unfused_ = false, drops_ = false, drops_weights_ = false;
  bool embeds_ = false, outputs_ = false;
  std::size_t checkpoint_layers_ = 1;
  std::vector<Half> halves_;
  std::optional<WholeBuffers> whole_;  ///< with sharded gradients
  std::vector<Group> groups_;
  MemoryClass stream_class_ = MemoryClass::activations;  ///< of the stream where the walk is

  StageHoldings result_;
  ClassBytes now_{};
  double most_ = -1, most_of_last_ = -1;
  std::size_t place_ = 1;  ///< in the order of whole_buffers
  bool lent_gradient_ = true;
  bool arrived_gradient_ = true;  ///< from the next stage
  bool outer_gradient_lent_ = false;
};

}  // namespace

StageHoldings stage_holdings(const CostInputs& inputs, const RankLoad& load, std::size_t chunk, bool defers) {
  return StageWalk(inputs, load, chunk, defers).run();
}

}  // namespace cost_models
