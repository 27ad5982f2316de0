// All parameters of one rank, laid into flat buckets.
//
// A block is what a layer uses as one matrix: one parameter, or several that lie one after another (query,
// key and value projections; gate and up projections) so that one matrix product serves them all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/model/parameter.h"

namespace runtime {

class ParameterBlock;

/// Told of every contribution to a block's gradient.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void accumulated(ParameterBlock& block) = 0;
};

class ParameterBlock {
 public:
  ParameterBlock(std::vector<ParameterSpec> specs, std::int64_t stage);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  std::int64_t stage() const { return parameters_.front().stage; }
  std::int64_t numel() const;
  bool tied() const { return parameters_.front().spec.tied; }

  /// All parameters of the block as one tensor, stacked along dim 0. Views into the bucket.
  const at::Tensor& value() const { return value_; }
  const at::Tensor& gradient() const { return gradient_; }

  /// Contributions to the gradient of one micro-batch: 2 for a table that embeds and is the output layer.
  std::int64_t uses_per_micro_batch() const { return uses_; }
  void add_use() { ++uses_; }

  /// gradient += contribution.
  void accumulate(const at::Tensor& contribution);
  /// gradient += leftᵀ · right, for the weight of a linear layer; in the gradient's precision where that is
  /// the operands', else rounded to theirs once and added.
  void accumulate_product(const at::Tensor& left, const at::Tensor& right);
  /// The gradient was changed by other means.
  void notify();

 private:
  friend class ParameterRegistry;
  std::vector<Parameter> parameters_;
  at::Tensor value_;
  at::Tensor gradient_;
  std::int64_t uses_ = 1;
  GradientListener* listener_ = nullptr;
};

/// One flat buffer of values and one of gradients. Elements between parameters and after the last are padding
/// and stay zero.
struct Bucket {
  std::int64_t stage = 0;
  bool tied = false;  ///< holds a tied parameter, alone
  std::int64_t numel = 0;
  std::vector<ParameterBlock*> blocks;  ///< in the order their gradients become complete
  at::Tensor values;
  at::Tensor gradients;
};

struct BucketOptions {
  std::int64_t bytes = 0;   ///< of gradients a bucket holds before the next one begins; 0: all in one
  std::int64_t shards = 1;  ///< a bucket's elements are a multiple of this
  at::ScalarType value_type = at::kFloat;
  at::ScalarType gradient_type = at::kFloat;
};

class ParameterRegistry {
 public:
  /// Declared in the order of the forward pass, stage by stage.
  ParameterBlock& add(std::vector<ParameterSpec> specs, std::int64_t stage);
  ParameterBlock& add(ParameterSpec spec, std::int64_t stage);

  /// Lays the blocks into buckets, those of a stage last first, allocates, and fills in the initial values,
  /// which depend on seed, name and position in the full tensor alone.
  void materialize(const BucketOptions& options, std::uint64_t seed);

  const std::vector<std::unique_ptr<ParameterBlock>>& blocks() const { return blocks_; }
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// In the order of the forward pass.
  std::vector<const Parameter*> parameters() const;
  ParameterBlock* find_block(std::string_view parameter_name);
  const Parameter* find(std::string_view name) const;

  void listen(GradientListener* listener);
  void zero_gradients();

 private:
  std::vector<std::unique_ptr<ParameterBlock>> blocks_;
  std::vector<Bucket> buckets_;
};

}  // namespace runtime
