#include "cost_models/whole_buffers.h"

#include <algorithm>
#include <limits>
#include <set>

#include "cost_models/parameters.h"

namespace cost_models {

WholeBuffers::WholeBuffers(const CostInputs& inputs, const RankLoad& load)
    : element_bytes_(inputs.gradient_bytes), places_(static_cast<std::size_t>(load.counts.attentions()) + 2) {
  lay_out(inputs, load);
  cut(load);
  if (load.shards.zero.stage >= 3) gather(inputs, load);
}

void WholeBuffers::lay_out(const CostInputs& inputs, const RankLoad& load) {
  const specs::ModelSpec& model = inputs.model;
  const ModelSizes& sizes = inputs.sizes;
  const bool by_unit = load.shards.zero.stage >= 3;
  const bool tied = model.tied_embeddings;
  const std::size_t embedding = places_ - 1;
  const ModuleSplit& split = load.split;
  const auto tensor = static_cast<std::int64_t>(split.attention);
  const auto table_over = [&](double ranks) {
    return sizes.hidden * static_cast<double>(padded_vocabulary(model, static_cast<std::int64_t>(ranks))) /
           ranks;
  };
  const bool biased_norm = model.normalization == specs::Normalization::layer_norm && model.norm_bias;
  const double h = sizes.hidden, f = sizes.ffn_hidden / split.feed_forward, norm = h * (biased_norm ? 2 : 1);
  const double query = sizes.heads * sizes.head_dim / split.attention;
  const double projected = query + 2 * static_cast<double>(kv_heads_per_rank(model, tensor)) * sizes.head_dim;
  const auto add = [&](double elements, std::size_t place, BlockRole role, std::size_t unit) {
    if (elements > 0) blocks_.push_back({elements, place, role, unit});
  };
  if (!tied) add(table_over(split.output), 0, BlockRole::output_table, 0);
  // The norm of an output layer that reads the embedding's table belongs to the table's unit.
  const bool norm_with_table = tied && by_unit;
  if (!norm_with_table) add(norm, 0, BlockRole::output_norm, 0);
  for (std::size_t layer = 1; layer < embedding; ++layer) {
    const auto linear = [&](double weight, double bias, bool has_bias, BlockRole role) {
      add(has_bias ? bias : 0, layer, role, layer);
      add(weight, layer, role, layer);
    };
    linear(f * h, h, model.feed_forward.bias, BlockRole::down);
    const double inner = sizes.gate_factor * f;
    linear(inner * h, inner, model.feed_forward.bias, BlockRole::up);
    add(norm, layer, BlockRole::feed_forward_norm, layer);
    linear(query * h, h, model.attention.output_bias, BlockRole::attention_output);
    linear(projected * h, projected, model.attention.qkv_bias, BlockRole::projections);
    add(norm, layer, BlockRole::attention_norm, layer);
  }
  if (norm_with_table) add(norm, 0, BlockRole::output_norm, embedding);
  if (model.position_encoding == specs::PositionEncoding::learned)
    add(static_cast<double>(model.positions) * h, embedding, BlockRole::positions, embedding);
  add(table_over(split.embedding), embedding, BlockRole::embedding_table, embedding);
  blocks_.back().shared_table = tied;
}

/// As the runtime cuts them: a bucket closes once it holds enough, after a block that is a message of its
/// own, where what is left is one too.
void WholeBuffers::cut(const RankLoad& load) {
  const bool by_unit = load.shards.zero.stage >= 3;
  const double limit = load.shards.gradient_bucket_bytes > 0 ? load.shards.gradient_bucket_bytes
                                                             : std::numeric_limits<double>::infinity();
  const double least = load.shards.minimum_message_bytes;
  const auto share = [&](const Block& a, const Block& b) {
    if (by_unit) return a.unit == b.unit;
    return !a.shared_table && !b.shared_table;
  };
  for (std::size_t begin = 0; begin < blocks_.size();) {
    std::size_t end = begin + 1;
    double left = blocks_[begin].elements * element_bytes_;
    for (; end < blocks_.size() && share(blocks_[begin], blocks_[end]); ++end)
      left += blocks_[end].elements * element_bytes_;
    bool closed = true;
    for (; begin < end; ++begin) {
      Block& block = blocks_[begin];
      if (closed) buckets_.emplace_back();
      Bucket& bucket = buckets_.back();
      block.bucket = buckets_.size() - 1;
      bucket.elements += block.elements;
      bucket.contributions += block.shared_table ? 2 : 1;
      const double bytes = block.elements * element_bytes_;
      left -= bytes;
      closed = bucket.elements * element_bytes_ >= limit && bytes >= least && left >= least;
    }
  }
}

/// While the unit at a place runs backward: that one and, of those used next, as many as are prefetched; and
/// those that are kept for their backward pass.
void WholeBuffers::gather(const CostInputs& inputs, const RankLoad& load) {
  const std::size_t embedding = places_ - 1;
  std::vector<double> unit(places_, 0);
  for (const Block& block : blocks_) unit[block.unit] += block.elements * inputs.element_bytes;
  const bool tied = inputs.model.tied_embeddings;
  if (tied) unit[0] = unit[embedding];
  // The embedding's backward pass reads nothing; the next micro-batch begins with its forward pass.
  std::vector<std::size_t> uses;
  for (std::size_t place = 0; place < embedding; ++place) uses.push_back(place);
  if (load.pipeline.micro_batches > 1) {
    uses.push_back(tied ? 0 : embedding);
    for (std::size_t place = embedding; place-- > 0;) uses.push_back(place);
  }
  const auto ahead = static_cast<std::size_t>(load.shards.prefetch_units) + 1;
  const auto kept = std::min(static_cast<std::size_t>(load.shards.zero.kept_units), embedding);
  gathered_.assign(places_, 0);
  for (std::size_t place = 0; place < embedding; ++place) {
    std::set<std::size_t> whole;
    for (std::size_t use = place; use < uses.size() && whole.size() < ahead; ++use) whole.insert(uses[use]);
    for (std::size_t other = place; other < kept; ++other) whole.insert(other);
    for (const std::size_t other : whole) gathered_[place] += unit[other];
  }
}

void WholeBuffers::open(std::size_t place, BlockRole role) {
  for (const Block& block : blocks_) {
    const bool here = block.place == place && block.role == role;
    const bool shared = block.shared_table && role == BlockRole::output_table;
    if (!here && !shared) continue;
    Bucket& bucket = buckets_[block.bucket];
    if (bucket.open) continue;
    while (travelling_.size() > 1) travelling_.pop_front();
    bucket.open = true;
  }
}

void WholeBuffers::complete(std::size_t place, BlockRole role) {
  for (const Block& block : blocks_) {
    const bool here = block.place == place && block.role == role;
    const bool shared = block.shared_table && role == BlockRole::output_table;
    if (!here && !shared) continue;
    Bucket& bucket = buckets_[block.bucket];
    if (--bucket.contributions > 0) continue;
    bucket.open = false;
    travelling_.push_back(&bucket);
  }
}

double WholeBuffers::gradient_bytes() const {
  double elements = 0;
  for (const Bucket& bucket : buckets_) elements += bucket.open ? bucket.elements : 0;
  for (const Bucket* bucket : travelling_) elements += bucket->elements;
  return elements * element_bytes_;
}

}  // namespace cost_models
