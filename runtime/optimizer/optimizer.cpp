#include "runtime/optimizer/optimizer.h"

#include <algorithm>

#include <ATen/ops/zeros.h>

#include "runtime/model/initialization.h"
#include "runtime/monitor/memory_class.h"

namespace runtime {

namespace {

/// The part of a parameter, without its padding, that lies in `range` of its bucket; empty where begin = end.
BucketRange overlap(const Parameter& parameter, const BucketRange& range) {
  const std::int64_t begin = std::max(range.begin - parameter.bucket_offset, std::int64_t{0});
  const std::int64_t end = std::min(range.end - parameter.bucket_offset, parameter.valid_numel());
  return {begin, std::max(begin, end)};
}

std::vector<std::string> moment_names(const specs::OptimizerSpec& spec) {
  if (spec.type == specs::OptimizerKind::sgd) return {"momentum"};
  return {"exp_avg", "exp_avg_sq"};
}

}  // namespace

Optimizer::Optimizer(ParameterRegistry& registry, const specs::OptimizerSpec& spec,
                     const Communicator& replicas, bool sharded, std::uint64_t seed)
    : registry_(registry),
      spec_(spec),
      replicas_(replicas),
      sharded_(sharded && replicas.size() > 1),
      has_master_(!registry.buckets().empty() && registry.buckets().front().values.element_size() == 2) {
  for (Bucket& bucket : registry_.buckets()) {
    first_slice_.push_back(slices_.size());
    make_state(bucket, seed);
  }
  first_slice_.push_back(slices_.size());
}

void Optimizer::make_state(Bucket& bucket, std::uint64_t seed) {
  BucketState state;
  state.range =
      sharded_ ? shard_of(bucket, replicas_.rank(), replicas_.size()) : BucketRange{0, bucket.numel};
  state.weight = bucket.values.narrow(0, state.range.begin, state.range.size());
  const at::ScalarType type = has_master_ ? at::kFloat : bucket.values.scalar_type();
  if (has_master_) {
    const MemoryClassScope scope(specs::MemoryClass::master_weights);
    state.weight = at::zeros({state.range.size()}, type);
  }
  {
    const MemoryClassScope scope(specs::MemoryClass::optimizer_state);
    for (const std::string& name : moment_names(spec_))
      state.moments.emplace_back(name, at::zeros({state.range.size()}, type));
  }
  make_slices(bucket, state);
  if (has_master_)
    for (std::size_t i = first_slice_.back(); i < slices_.size(); ++i)
      fill_initial(slices_[i].parameter->spec, seed, slices_[i].begin, slices_[i].weight);
  states_.push_back(std::move(state));
}

void Optimizer::make_slices(const Bucket& bucket, const BucketState& state) {
  for (const ParameterBlock* block : bucket.blocks)
    for (const Parameter& parameter : block->parameters()) {
      const BucketRange part = overlap(parameter, state.range);
      if (part.size() == 0) continue;
      const std::int64_t in_bucket = parameter.bucket_offset + part.begin;
      const std::int64_t in_state = in_bucket - state.range.begin;
      StateSlice slice{&parameter,
                       part.begin,
                       part.end,
                       state.weight.narrow(0, in_state, part.size()),
                       bucket.gradients.narrow(0, in_bucket, part.size()),
                       {}};
      for (const auto& [name, moment] : state.moments)
        slice.moments.emplace_back(name, moment.narrow(0, in_state, part.size()));
      slices_.push_back(std::move(slice));
    }
}

void Optimizer::update(double learning_rate, double gradient_scale) {
  ++updates_;
  UpdateFactors factors;
  factors.learning_rate = learning_rate;
  factors.gradient_scale = gradient_scale;
  factors.beta1 = spec_.beta1;
  factors.beta2 = spec_.beta2;
  factors.epsilon = spec_.epsilon;
  factors.momentum = spec_.momentum;
  factors.step = updates_;
  for (std::size_t bucket = 0; bucket < states_.size(); ++bucket) {
    for (std::size_t i = first_slice_[bucket]; i < first_slice_[bucket + 1]; ++i) {
      const StateSlice& slice = slices_[i];
      factors.weight_decay = slice.parameter->spec.weight_decay ? spec_.weight_decay : 0;
      if (spec_.type == specs::OptimizerKind::adamw)
        update_adamw(slice.weight, slice.moments[0].second, slice.moments[1].second, slice.gradient, factors);
      else
        update_sgd(slice.weight, slice.moments[0].second, slice.gradient, factors);
    }
    publish(bucket);
  }
  for (PendingWork& gather : gathers_) gather.wait();
  gathers_.clear();
}

void Optimizer::publish(std::size_t index) {
  const Bucket& bucket = registry_.buckets()[index];
  const BucketState& state = states_[index];
  const at::Tensor mine = bucket.values.narrow(0, state.range.begin, state.range.size());
  if (has_master_) mine.copy_(state.weight);
  if (sharded_ && !skip_gather) gathers_.push_back(replicas_.all_gather_into_async(bucket.values, mine));
}

void Optimizer::masters_from_parameters() {
  if (!has_master_) return;
  for (std::size_t i = 0; i < states_.size(); ++i)
    states_[i].weight.copy_(
        registry_.buckets()[i].values.narrow(0, states_[i].range.begin, states_[i].range.size()));
}

void Optimizer::parameters_from_masters() {
  for (std::size_t i = 0; i < states_.size(); ++i) publish(i);
  for (PendingWork& gather : gathers_) gather.wait();
  gathers_.clear();
}

}  // namespace runtime
