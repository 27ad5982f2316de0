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
  /// The gradient is about to be written and has no memory: after this, it has, and is zero.
  virtual void open(ParameterBlock& block) = 0;
  virtual void accumulated(ParameterBlock& block) = 0;
};

/// Elements [begin, end) of a bucket.
struct BucketRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  /// Part `index` of `parts` equal ones.
  BucketRange part(std::int64_t index, std::int64_t parts) const;
};

/// What a block belongs to: stage, and unit of the model (embedding, a transformer block, output).
struct UnitOfStage {
  std::int64_t stage = 0;
  std::int64_t unit = 0;
  bool operator==(const UnitOfStage&) const = default;
};

class ParameterBlock {
 public:
  ParameterBlock(std::vector<ParameterSpec> specs, UnitOfStage unit);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const UnitOfStage& unit() const { return unit_; }
  std::int64_t stage() const { return unit_.stage; }
  std::int64_t numel() const;
  bool tied() const { return parameters_.front().spec.tied; }

  /// All parameters of the block as one tensor, stacked along dim 0: a view into the bucket. With ZeRO 3 only
  /// while the block's unit is gathered.
  const at::Tensor& value() const { return value_; }
  /// Likewise the gradient, to be written to. With ZeRO 2 and 3 it exists from its first use in the backward
  /// pass of a micro-batch until it has been reduced.
  const at::Tensor& gradient();

  /// Contributions to the gradient of one micro-batch: 2 for a table that embeds and is the output layer.
  std::int64_t uses_per_micro_batch() const { return uses_; }
  void add_use() { ++uses_; }

  /// gradient += contribution.
  void accumulate(const at::Tensor& contribution);
  /// gradient += Σ rows, for a bias; summed in fp32 where the rows are narrower.
  void accumulate_rows(const at::Tensor& rows);
  /// gradient += leftᵀ · right, for the weight of a linear layer; in the gradient's precision where that is
  /// the operands' or the processor multiplies bf16 into fp32, else rounded to theirs once and added.
  void accumulate_product(const at::Tensor& left, const at::Tensor& right);
  /// The gradient was changed by other means.
  void notify();

 private:
  friend class ParameterRegistry;
  UnitOfStage unit_;
  std::vector<Parameter> parameters_;
  at::Tensor value_;
  at::Tensor gradient_;
  std::int64_t uses_ = 1;
  GradientListener* listener_ = nullptr;
};

/// One flat buffer of values and one of gradients, cut alike. Elements between parameters and after the last
/// are padding: zero, counted by no one, saved nowhere.
struct Bucket {
  UnitOfStage unit;   ///< of its first block; with a bucket for each unit, of all
  bool tied = false;  ///< holds a tied parameter, alone
  std::int64_t numel = 0;
  std::vector<ParameterBlock*> blocks;  ///< in the order their gradients become complete
  BucketRange shard;                    ///< what this rank keeps of what is sharded; all where nothing is
  at::Tensor values;                    ///< all elements; undefined while only the shard is held
  at::Tensor gradients;                 ///< likewise
  at::Tensor value_shard;               ///< a view into `values`, or with ZeRO 3 memory of its own
  at::Tensor gradient_shard;            ///< a view into `gradients`, or with ZeRO 2 and 3 memory of its own
};

/// The part of a parameter, without its padding rows, that lies in `range` of its bucket, counted from the
/// parameter's first element; empty where begin = end.
BucketRange overlap(const Parameter& parameter, const BucketRange& range);

struct BucketOptions {
  std::int64_t bytes = 0;          ///< of gradients a bucket holds before the next one begins; 0: no limit
  std::int64_t minimum_bytes = 0;  ///< less than this never becomes a bucket where it can join another
  std::int64_t zero_stage = 0;     ///< 3: a unit's blocks share buckets with no other unit's
  std::int64_t shard_rank = 0;     ///< of this rank among those that share a copy
  std::int64_t shard_ranks = 1;
  std::int64_t multiple = 1;  ///< that a bucket's elements are of, itself a multiple of the shard ranks
  at::ScalarType value_type = at::kFloat;
  at::ScalarType gradient_type = at::kFloat;
};

class ParameterRegistry {
 public:
  /// Declared in the order of the forward pass, stage by stage.
  ParameterBlock& add(std::vector<ParameterSpec> specs, UnitOfStage unit);
  ParameterBlock& add(ParameterSpec spec, UnitOfStage unit);

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

  /// Makes the bucket's blocks views into a whole flat buffer, and takes them and the buffer away again.
  static void attach_values(Bucket& bucket, at::Tensor whole);
  static void attach_gradients(Bucket& bucket, at::Tensor whole);
  static void detach_values(Bucket& bucket);
  static void detach_gradients(Bucket& bucket);

 private:
  std::vector<std::unique_ptr<ParameterBlock>> blocks_;
  std::vector<Bucket> buckets_;
};

}  // namespace runtime
