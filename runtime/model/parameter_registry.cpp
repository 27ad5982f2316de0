#include "runtime/model/parameter_registry.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "runtime/kernels/column_sums.h"
#include "runtime/kernels/matrix_products.h"
#include "runtime/model/initialization.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

/// Blocks begin on 64-byte boundaries of fp32, which the matrix kernels read fastest.
constexpr std::int64_t block_alignment = 16;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Blocks in the order their gradients become complete: the backward pass, last stage first; unit by unit
/// where units have buckets of their own.
std::vector<ParameterBlock*> backward_order(const std::vector<std::unique_ptr<ParameterBlock>>& blocks,
                                            bool by_unit) {
  std::vector<ParameterBlock*> order;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) order.push_back(block->get());
  const auto place = [by_unit](const ParameterBlock* block) {
    return std::pair(block->stage(), by_unit ? block->unit().unit : 0);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return place(a) > place(b); });
  return order;
}

/// Cuts the order into buckets. A cut stands only after a block that is large enough to be a message: then no
/// small tensor is a bucket, and a bias stays with its weight, whose gradient comes before its own.
class BucketCutter {
 public:
  BucketCutter(const std::vector<ParameterBlock*>& order, const BucketOptions& options)
      : order_(order), options_(options) {}

  std::vector<Bucket> run() {
    for (std::size_t begin = 0; begin < order_.size();) {
      std::size_t end = begin + 1;
      while (end < order_.size() && share_buckets(order_[begin], order_[end])) ++end;
      cut(begin, end);
      begin = end;
    }
    return std::move(buckets_);
  }

 private:
  std::int64_t bytes_of(const ParameterBlock* block) const {
    return block->numel() * static_cast<std::int64_t>(c10::elementSize(options_.gradient_type));
  }
  /// A tied table waits for its copy, and one of two uses for the end of the backward pass: nothing else is
  /// to wait with them.
  bool stands_alone(const ParameterBlock* block) const {
    return block->tied() || (options_.zero_stage < 3 && block->uses_per_micro_batch() > 1);
  }
  bool share_buckets(const ParameterBlock* a, const ParameterBlock* b) const {
    if (stands_alone(a) || stands_alone(b)) return false;
    return options_.zero_stage < 3 ? a->stage() == b->stage() : a->unit() == b->unit();
  }

  /// Blocks [begin, end), which may share buckets.
  void cut(std::size_t begin, std::size_t end) {
    const std::int64_t limit = options_.bytes > 0 ? options_.bytes : std::numeric_limits<std::int64_t>::max();
    std::int64_t left = 0;
    for (std::size_t i = begin; i < end; ++i) left += bytes_of(order_[i]);
    std::int64_t held = 0;
    bool closed = true;
    for (std::size_t i = begin; i < end; ++i) {
      if (closed) open(*order_[i]);
      add(*order_[i]);
      const std::int64_t bytes = bytes_of(order_[i]);
      held += bytes;
      left -= bytes;
      closed = held >= limit && bytes >= options_.minimum_bytes && left >= options_.minimum_bytes;
      if (closed) held = 0;
    }
  }

  void open(const ParameterBlock& first) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.unit = first.unit();
    bucket.tied = first.tied();
  }

  void add(ParameterBlock& block) {
    Bucket& bucket = buckets_.back();
    bucket.blocks.push_back(&block);
    std::int64_t offset = bucket.numel;
    for (Parameter& parameter : block.parameters()) {
      parameter.bucket = static_cast<std::int64_t>(buckets_.size()) - 1;
      parameter.bucket_offset = offset;
      offset += parameter.numel();
    }
    bucket.numel = round_up(offset, block_alignment);
  }

  const std::vector<ParameterBlock*>& order_;
  const BucketOptions& options_;
  std::vector<Bucket> buckets_;
};

std::vector<std::int64_t> stacked_shape(const std::vector<Parameter>& parameters) {
  std::vector<std::int64_t> shape = parameters.front().spec.local_shape;
  for (std::size_t i = 1; i < parameters.size(); ++i) shape[0] += parameters[i].spec.local_shape[0];
  return shape;
}

/// The initial values of what this rank holds.
void fill_bucket(const Bucket& bucket, std::uint64_t seed) {
  const bool whole = bucket.values.defined();
  const BucketRange held = whole ? BucketRange{0, bucket.numel} : bucket.shard;
  const at::Tensor& values = whole ? bucket.values : bucket.value_shard;
  const bool direct = values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble;
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const BucketRange part = overlap(parameter, held);
      if (part.size() == 0) continue;
      const at::Tensor flat =
          values.narrow(0, parameter.bucket_offset + part.begin - held.begin, part.size());
      if (direct) {
        fill_initial(parameter.spec, seed, part.begin, flat);
        continue;
      }
      const at::Tensor wide = at::empty({part.size()}, at::kFloat);
      fill_initial(parameter.spec, seed, part.begin, wide);
      flat.copy_(wide);
    }
}

void allocate(Bucket& bucket, const BucketOptions& options) {
  {
    const MemoryClassScope scope(specs::MemoryClass::parameters);
    if (options.zero_stage >= 3) {
      bucket.value_shard = at::zeros({bucket.shard.size()}, options.value_type);
    } else {
      ParameterRegistry::attach_values(bucket, at::zeros({bucket.numel}, options.value_type));
      bucket.value_shard = bucket.values.narrow(0, bucket.shard.begin, bucket.shard.size());
    }
  }
  const MemoryClassScope scope(specs::MemoryClass::gradients);
  if (options.zero_stage >= 2) {
    bucket.gradient_shard = at::zeros({bucket.shard.size()}, options.gradient_type);
  } else {
    ParameterRegistry::attach_gradients(bucket, at::zeros({bucket.numel}, options.gradient_type));
    bucket.gradient_shard = bucket.gradients.narrow(0, bucket.shard.begin, bucket.shard.size());
  }
}

at::Tensor view_of(const at::Tensor& flat, const Parameter& parameter) {
  return flat.narrow(0, parameter.bucket_offset, parameter.numel()).view(parameter.spec.local_shape);
}

at::Tensor view_of(const at::Tensor& flat, const std::vector<Parameter>& block, std::int64_t numel) {
  return flat.narrow(0, block.front().bucket_offset, numel).view(stacked_shape(block));
}

/// sum += leftᵀ · right, the product in a narrower type than the sum's: some rows at a time, for the sake of
/// memory.
void add_narrow_product(const at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  constexpr std::int64_t product_bytes = 1 << 18;
  const MemoryClassScope scope(specs::MemoryClass::workspace);
  const std::int64_t row_bytes = right.size(1) * static_cast<std::int64_t>(right.element_size());
  const std::int64_t rows = std::max<std::int64_t>(product_bytes / std::max<std::int64_t>(row_bytes, 1), 16);
  for (std::int64_t first = 0; first < left.size(1); first += rows) {
    const std::int64_t count = std::min(rows, left.size(1) - first);
    sum.narrow(0, first, count).add_(left.narrow(1, first, count).t().mm(right));
  }
}

}  // namespace

BucketRange BucketRange::part(std::int64_t index, std::int64_t parts) const {
  const std::int64_t length = size() / parts;
  return {begin + index * length, begin + (index + 1) * length};
}

BucketRange overlap(const Parameter& parameter, const BucketRange& range) {
  const std::int64_t begin = std::max(range.begin - parameter.bucket_offset, std::int64_t{0});
  const std::int64_t end = std::min(range.end - parameter.bucket_offset, parameter.valid_numel());
  return {begin, std::max(begin, end)};
}

ParameterBlock::ParameterBlock(std::vector<ParameterSpec> specs, UnitOfStage unit) : unit_(unit) {
  for (ParameterSpec& spec : specs) {
    Parameter parameter;
    parameter.spec = std::move(spec);
    parameters_.push_back(std::move(parameter));
  }
}

std::int64_t ParameterBlock::numel() const {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.numel();
  return total;
}

const at::Tensor& ParameterBlock::gradient() {
  if (!gradient_.defined() && listener_ != nullptr) listener_->open(*this);
  return gradient_;
}

void ParameterBlock::accumulate(const at::Tensor& contribution) {
  gradient().add_(contribution.view_as(gradient_));
  notify();
}

void ParameterBlock::accumulate_rows(const at::Tensor& rows) {
  const at::ScalarType wide = rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  if (gradient().scalar_type() == wide)
    kernels::add_column_sums(gradient_, rows);
  else
    gradient_.add_(rows.sum(0, false, gradient_.scalar_type()));
  notify();
}

void ParameterBlock::accumulate_product(const at::Tensor& left, const at::Tensor& right) {
  if (kernels::can_accumulate_product(gradient(), left, right)) {
    kernels::accumulate_product(gradient(), left, right);
  } else if (left.scalar_type() == gradient().scalar_type()) {
    gradient_.addmm_(left.t(), right);
  } else {
    add_narrow_product(gradient_, left, right);
  }
  notify();
}

void ParameterBlock::notify() {
  if (listener_ != nullptr) listener_->accumulated(*this);
}

ParameterBlock& ParameterRegistry::add(std::vector<ParameterSpec> specs, UnitOfStage unit) {
  blocks_.push_back(std::make_unique<ParameterBlock>(std::move(specs), unit));
  return *blocks_.back();
}

ParameterBlock& ParameterRegistry::add(ParameterSpec spec, UnitOfStage unit) {
  std::vector<ParameterSpec> specs;
  specs.push_back(std::move(spec));
  return add(std::move(specs), unit);
}

void ParameterRegistry::materialize(const BucketOptions& options, std::uint64_t seed) {
  buckets_ = BucketCutter(backward_order(blocks_, options.zero_stage >= 3), options).run();
  for (Bucket& bucket : buckets_) {
    bucket.numel = round_up(bucket.numel, block_alignment * options.multiple);
    const BucketRange all{0, bucket.numel};
    bucket.shard = options.zero_stage >= 1 ? all.part(options.shard_rank, options.shard_ranks) : all;
    allocate(bucket, options);
    fill_bucket(bucket, seed);
  }
}

void ParameterRegistry::attach_values(Bucket& bucket, at::Tensor whole) {
  bucket.values = std::move(whole);
  for (ParameterBlock* block : bucket.blocks) {
    for (Parameter& parameter : block->parameters_) parameter.value = view_of(bucket.values, parameter);
    block->value_ = view_of(bucket.values, block->parameters_, block->numel());
  }
}

void ParameterRegistry::attach_gradients(Bucket& bucket, at::Tensor whole) {
  bucket.gradients = std::move(whole);
  for (ParameterBlock* block : bucket.blocks) {
    for (Parameter& parameter : block->parameters_) parameter.gradient = view_of(bucket.gradients, parameter);
    block->gradient_ = view_of(bucket.gradients, block->parameters_, block->numel());
  }
}

void ParameterRegistry::detach_values(Bucket& bucket) {
  bucket.values.reset();
  for (ParameterBlock* block : bucket.blocks) {
    for (Parameter& parameter : block->parameters_) parameter.value.reset();
    block->value_.reset();
  }
}

void ParameterRegistry::detach_gradients(Bucket& bucket) {
  bucket.gradients.reset();
  for (ParameterBlock* block : bucket.blocks) {
    for (Parameter& parameter : block->parameters_) parameter.gradient.reset();
    block->gradient_.reset();
  }
}

std::vector<const Parameter*> ParameterRegistry::parameters() const {
  std::vector<const Parameter*> all;
  for (const auto& block : blocks_)
    for (const Parameter& parameter : block->parameters()) all.push_back(&parameter);
  return all;
}

ParameterBlock* ParameterRegistry::find_block(std::string_view parameter_name) {
  for (const auto& block : blocks_)
    for (const Parameter& parameter : block->parameters())
      if (parameter.name() == parameter_name) return block.get();
  return nullptr;
}

const Parameter* ParameterRegistry::find(std::string_view name) const {
  for (const auto& block : blocks_)
    for (const Parameter& parameter : block->parameters())
      if (parameter.name() == name) return &parameter;
  return nullptr;
}

void ParameterRegistry::listen(GradientListener* listener) {
  for (const auto& block : blocks_) block->listener_ = listener;
}

}  // namespace runtime
