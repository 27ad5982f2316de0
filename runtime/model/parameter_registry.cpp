#include "runtime/model/parameter_registry.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "runtime/model/initialization.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

/// Blocks begin on 64-byte boundaries of fp32, which the matrix kernels read fastest.
constexpr std::int64_t block_alignment = 16;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Blocks in the order their gradients become complete: the backward pass, last stage first.
std::vector<ParameterBlock*> backward_order(const std::vector<std::unique_ptr<ParameterBlock>>& blocks) {
  std::vector<ParameterBlock*> order;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) order.push_back(block->get());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->stage() > b->stage(); });
  return order;
}

void assign_buckets(const std::vector<ParameterBlock*>& order, const BucketOptions& options,
                    std::vector<Bucket>& buckets) {
  const std::int64_t bytes = options.bytes > 0 ? options.bytes : std::numeric_limits<std::int64_t>::max();
  const std::int64_t limit = bytes / static_cast<std::int64_t>(c10::elementSize(options.gradient_type));
  for (ParameterBlock* block : order) {
    const bool open = !buckets.empty() && buckets.back().stage == block->stage() && !buckets.back().tied &&
                      !block->tied() && buckets.back().numel < limit;
    if (!open) {
      buckets.emplace_back();
      buckets.back().stage = block->stage();
      buckets.back().tied = block->tied();
    }
    Bucket& bucket = buckets.back();
    bucket.blocks.push_back(block);
    std::int64_t offset = bucket.numel;
    for (Parameter& parameter : block->parameters()) {
      parameter.bucket = static_cast<std::int64_t>(buckets.size()) - 1;
      parameter.bucket_offset = offset;
      offset += parameter.numel();
    }
    bucket.numel = round_up(offset, block_alignment);
  }
  for (Bucket& bucket : buckets) bucket.numel = round_up(bucket.numel, block_alignment * options.shards);
}

std::vector<std::int64_t> stacked_shape(const std::vector<Parameter>& parameters) {
  std::vector<std::int64_t> shape = parameters.front().spec.local_shape;
  for (std::size_t i = 1; i < parameters.size(); ++i) shape[0] += parameters[i].spec.local_shape[0];
  return shape;
}

void fill_bucket(Bucket& bucket, std::uint64_t seed) {
  const at::ScalarType type = bucket.values.scalar_type();
  const bool direct = type == at::kFloat || type == at::kDouble;
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const at::Tensor flat = parameter.value.view({-1});
      if (direct) {
        fill_initial(parameter.spec, seed, 0, flat);
        continue;
      }
      const at::Tensor wide = at::empty({parameter.numel()}, at::kFloat);
      fill_initial(parameter.spec, seed, 0, wide);
      flat.copy_(wide);
    }
}

}  // namespace

ParameterBlock::ParameterBlock(std::vector<ParameterSpec> specs, std::int64_t stage) {
  for (ParameterSpec& spec : specs) {
    Parameter parameter;
    parameter.spec = std::move(spec);
    parameter.stage = stage;
    parameters_.push_back(std::move(parameter));
  }
}

std::int64_t ParameterBlock::numel() const {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.numel();
  return total;
}

void ParameterBlock::accumulate(const at::Tensor& contribution) {
  gradient_.add_(contribution.view_as(gradient_));
  notify();
}

void ParameterBlock::accumulate_product(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() == gradient_.scalar_type()) {
    gradient_.addmm_(left.t(), right);
  } else {
    const MemoryClassScope scope(specs::MemoryClass::workspace);
    gradient_.add_(left.t().mm(right));
  }
  notify();
}

void ParameterBlock::notify() {
  if (listener_ != nullptr) listener_->accumulated(*this);
}

ParameterBlock& ParameterRegistry::add(std::vector<ParameterSpec> specs, std::int64_t stage) {
  blocks_.push_back(std::make_unique<ParameterBlock>(std::move(specs), stage));
  return *blocks_.back();
}

ParameterBlock& ParameterRegistry::add(ParameterSpec spec, std::int64_t stage) {
  std::vector<ParameterSpec> specs;
  specs.push_back(std::move(spec));
  return add(std::move(specs), stage);
}

void ParameterRegistry::materialize(const BucketOptions& options, std::uint64_t seed) {
  buckets_.clear();
  assign_buckets(backward_order(blocks_), options, buckets_);
  for (Bucket& bucket : buckets_) {
    {
      const MemoryClassScope scope(specs::MemoryClass::parameters);
      bucket.values = at::zeros({bucket.numel}, options.value_type);
    }
    {
      const MemoryClassScope scope(specs::MemoryClass::gradients);
      bucket.gradients = at::zeros({bucket.numel}, options.gradient_type);
    }
    for (ParameterBlock* block : bucket.blocks) {
      for (Parameter& parameter : block->parameters_) {
        const auto view = [&](const at::Tensor& flat) {
          return flat.narrow(0, parameter.bucket_offset, parameter.numel()).view(parameter.spec.local_shape);
        };
        parameter.value = view(bucket.values);
        parameter.gradient = view(bucket.gradients);
      }
      const std::vector<std::int64_t> shape = stacked_shape(block->parameters_);
      const std::int64_t offset = block->parameters_.front().bucket_offset;
      block->value_ = bucket.values.narrow(0, offset, block->numel()).view(shape);
      block->gradient_ = bucket.gradients.narrow(0, offset, block->numel()).view(shape);
    }
    fill_bucket(bucket, seed);
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

void ParameterRegistry::zero_gradients() {
  for (Bucket& bucket : buckets_) bucket.gradients.zero_();
}

}  // namespace runtime
