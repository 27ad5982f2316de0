#include "cost_models/whole_buffers.h"

#include <algorithm>
#include <limits>

#include "cost_models/parameters.h"

namespace cost_models {
namespace {

/// Parameters that are used as one matrix, or one vector; `place` in the order of the backward pass.
struct Block {
  double elements = 0;
  std::size_t place = 0;
  std::size_t unit = 0;       ///< that it belongs to, in the same order
  bool shared_table = false;  ///< embeds and is the output layer: filled from one end to the other
};

struct Bucket {
  double elements = 0;
  std::size_t first = 0;  ///< place at which it is opened
  std::size_t last = 0;
  bool shared_table = false;
};

/// The blocks of a dense model in the order in which they are laid into buckets.
class Layout {
 public:
  Layout(const CostInputs& inputs, const RankLoad& load)
      : model_(inputs.model),
        sizes_(inputs.sizes),
        tensor_(load.tensor),
        layers_(static_cast<std::size_t>(load.counts.attentions())),
        by_unit_(load.shards.zero.stage >= 3) {
    table_ = sizes_.hidden *
             static_cast<double>(padded_vocabulary(model_, static_cast<std::int64_t>(load.output_tensor))) /
             load.output_tensor;
    const bool biased = model_.normalization == specs::Normalization::layer_norm && model_.norm_bias;
    norm_ = sizes_.hidden * (biased ? 2 : 1);
  }

  std::size_t embedding_place() const { return layers_ + 1; }
  const std::vector<Block>& blocks() const { return blocks_; }

  void build() {
    const bool tied = model_.tied_embeddings;
    if (!tied) add(table_, 0);
    // By the time of the norm's backward pass the logits are gone.
    if (!(tied && by_unit_)) add(norm_, 1, 0);
    for (std::size_t layer = 1; layer <= layers_; ++layer) add_layer(layer);
    // The norm of an output layer that reads the embedding's table belongs to the table's unit.
    if (tied && by_unit_) add(norm_, embedding_place());
    if (model_.position_encoding == specs::PositionEncoding::learned)
      add(static_cast<double>(model_.positions) * sizes_.hidden, embedding_place());
    add(table_, embedding_place());
    blocks_.back().shared_table = tied;
  }

 private:
  void add(double elements, std::size_t place, std::size_t unit) {
    if (elements > 0) blocks_.push_back({elements, place, unit});
  }
  void add(double elements, std::size_t place) { add(elements, place, place); }

  void add_layer(std::size_t place) {
    const double h = sizes_.hidden, f = sizes_.ffn_hidden / tensor_;
    const double query = sizes_.heads * sizes_.head_dim / tensor_;
    const double projected =
        query + 2 * static_cast<double>(kv_heads_per_rank(model_, static_cast<std::int64_t>(tensor_))) *
                    sizes_.head_dim;
    const bool bias = model_.feed_forward.bias;
    if (bias) add(h, place);
    add(f * h, place);
    if (bias) add(sizes_.gate_factor * f, place);
    add(sizes_.gate_factor * f * h, place);
    add(norm_, place);
    if (model_.attention.output_bias) add(h, place);
    add(query * h, place);
    if (model_.attention.qkv_bias) add(projected, place);
    add(projected * h, place);
    add(norm_, place);
  }

  const specs::ModelSpec& model_;
  const ModelSizes& sizes_;
  double tensor_;
  std::size_t layers_;
  bool by_unit_;
  double table_ = 0;
  double norm_ = 0;
  std::vector<Block> blocks_;
};

/// As the runtime cuts them: a bucket closes once it holds enough, after a block that is a message of its
/// own, where what is left is one too.
std::vector<Bucket> cut(const std::vector<Block>& blocks, const RankLoad& load, double element_bytes) {
  const bool by_unit = load.shards.zero.stage >= 3;
  const double limit = load.shards.gradient_bucket_bytes > 0 ? load.shards.gradient_bucket_bytes
                                                             : std::numeric_limits<double>::infinity();
  const double least = load.shards.minimum_message_bytes;
  const auto share = [&](const Block& a, const Block& b) {
    if (by_unit) return a.unit == b.unit;
    return !a.shared_table && !b.shared_table;
  };
  std::vector<Bucket> buckets;
  for (std::size_t begin = 0; begin < blocks.size();) {
    std::size_t end = begin + 1;
    double left = blocks[begin].elements * element_bytes;
    for (; end < blocks.size() && share(blocks[begin], blocks[end]); ++end)
      left += blocks[end].elements * element_bytes;
    bool closed = true;
    for (; begin < end; ++begin) {
      const Block& block = blocks[begin];
      if (closed) buckets.push_back({0, block.place, block.place, false});
      Bucket& bucket = buckets.back();
      bucket.elements += block.elements;
      bucket.last = block.place;
      if (block.shared_table) {
        bucket.shared_table = true;
        bucket.first = 0;
      }
      const double bytes = block.elements * element_bytes;
      left -= bytes;
      closed = bucket.elements * element_bytes >= limit && bytes >= least && left >= least;
    }
  }
  return buckets;
}

}  // namespace

std::vector<WholeBuffers> whole_buffers(const CostInputs& inputs, const RankLoad& load) {
  Layout layout(inputs, load);
  layout.build();
  const std::size_t places = layout.embedding_place() + 1;
  std::vector<WholeBuffers> whole(places);
  const std::vector<Bucket> buckets = cut(layout.blocks(), load, inputs.gradient_bytes);
  const Bucket* travelling = nullptr;
  for (const Bucket& bucket : buckets) {
    const double moving = travelling == nullptr ? 0 : travelling->elements;
    for (std::size_t place = bucket.first; place <= bucket.last; ++place) {
      WholeBuffers& here = whole[place];
      // The shared table is there beside the others, before any of them travels.
      if (bucket.shared_table && place < bucket.last)
        here.gradient_bytes += bucket.elements * inputs.gradient_bytes;
      else
        here.gradient_bytes =
            std::max(here.gradient_bytes, (bucket.elements + moving) * inputs.gradient_bytes);
    }
    travelling = &bucket;
  }
  if (load.shards.zero.stage < 3) return whole;

  std::vector<double> unit(places, 0);
  for (const Block& block : layout.blocks()) unit[block.unit] += block.elements * inputs.element_bytes;
  if (inputs.model.tied_embeddings) unit[0] = unit.back();
  const auto prefetch = static_cast<std::size_t>(load.shards.prefetch_units);
  const auto kept = static_cast<std::size_t>(load.shards.zero.kept_units);
  for (std::size_t place = 0; place < places; ++place) {
    // The embedding's backward pass reads nothing.
    const std::size_t end = std::min(std::max(place + prefetch + 1, kept), places - 1);
    for (std::size_t other = place; other < end; ++other) whole[place].parameter_bytes += unit[other];
  }
  return whole;
}

}  // namespace cost_models
