// What this project's runtime holds whole for a moment under ZeRO 2 and 3: the gradient buckets that are
// filled, those that travel, and with ZeRO 3 the gathered units. It follows runtime/data_parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "cost_models/memory.h"

namespace cost_models {

/// Parameters whose gradients come at one moment of a unit's backward pass.
enum class BlockRole : std::uint8_t {
  output_table,
  output_norm,
  down,
  up,
  feed_forward_norm,
  attention_output,
  projections,
  attention_norm,
  positions,
  embedding_table,
};

/// Of a load that holds the whole model, with a ZeRO stage of 2 or 3 over more than one rank. Places are
/// those of the backward pass: the output layer 0, the layers from the last to the first, the embedding.
class WholeBuffers {
 public:
  WholeBuffers(const CostInputs& inputs, const RankLoad& load);

  /// The first contribution to the gradients of these parameters opens their bucket, once no more than one
  /// travels.
  void open(std::size_t place, BlockRole role);
  /// The last one sends the bucket off, when no other parameter of it waits.
  void complete(std::size_t place, BlockRole role);
  double gradient_bytes() const;
  /// Gathered while the unit at this place runs backward.
  double parameter_bytes(std::size_t place) const { return gathered_.empty() ? 0 : gathered_[place]; }

 private:
  /// Parameters that are used as one matrix, or one vector.
  struct Block {
    double elements = 0;
    std::size_t place = 0;
    BlockRole role = BlockRole::output_table;
    std::size_t unit = 0;       ///< that it is gathered with, as a place
    bool shared_table = false;  ///< embeds and is the output layer: filled from one end to the other
    std::size_t bucket = 0;
  };
  struct Bucket {
    double elements = 0;
    std::size_t contributions = 0;  ///< until it travels
    bool open = false;
  };

  void lay_out(const CostInputs& inputs, const RankLoad& load);
  void cut(const RankLoad& load);
  void gather(const CostInputs& inputs, const RankLoad& load);

  double element_bytes_ = 4;  ///< of a gradient
  std::size_t places_ = 0;
  std::vector<Block> blocks_;  ///< in the order in which they are laid into buckets
  std::vector<Bucket> buckets_;
  std::deque<const Bucket*> travelling_;
  std::vector<double> gathered_;  ///< by place
};

}  // namespace cost_models
