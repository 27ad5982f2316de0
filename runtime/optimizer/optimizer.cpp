#include "runtime/optimizer/optimizer.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

namespace runtime {

Optimizer::Optimizer(ParameterRegistry& registry, const specs::OptimizerSpec& spec, const Sharding& sharding,
                     const OptimizerOptions& options, std::uint64_t seed)
    : registry_(registry), spec_(spec), sharding_(sharding), options_(options) {
  StateLayout layout;
  layout.eighths_on_host = options.eighths_on_host;
  layout.aliases_device = options.aliases_device;
  parts_ = make_optimizer_state(registry_, spec_.type, layout, seed);
  for (std::size_t bucket = 0; bucket <= registry_.buckets().size(); ++bucket)
    first_part_.push_back(static_cast<std::size_t>(
        std::partition_point(parts_.begin(), parts_.end(),
                             [&](const StatePart& part) { return part.bucket < bucket; }) -
        parts_.begin()));
  host_job_.assign(registry_.buckets().size(), 0);
  const bool any_on_host =
      std::any_of(parts_.begin(), parts_.end(), [](const StatePart& part) { return part.on_host; });
  if (any_on_host) worker_ = std::make_unique<HostWorker>();
}

Optimizer::~Optimizer() = default;

template <class Body>
void Optimizer::for_parts_of(std::size_t bucket, Body body) const {
  for (std::size_t i = first_part_[bucket]; i < first_part_[bucket + 1]; ++i) body(parts_[i]);
}

UpdateFactors Optimizer::factors(double learning_rate, double gradient_scale) const {
  UpdateFactors factors;
  factors.learning_rate = learning_rate;
  factors.gradient_scale = gradient_scale;
  factors.beta1 = spec_.beta1;
  factors.beta2 = spec_.beta2;
  factors.epsilon = spec_.epsilon;
  factors.momentum = spec_.momentum;
  factors.step = updates_ + 1;
  return factors;
}

void Optimizer::update_part(const StatePart& part, UpdateFactors factors) const {
  for (const StateSlice& slice : part.slices) {
    factors.weight_decay = slice.parameter->spec.weight_decay ? spec_.weight_decay : 0;
    if (spec_.type == specs::OptimizerKind::adamw)
      update_adamw(slice.weight, slice.moments[0].second, slice.moments[1].second, slice.gradient, factors);
    else
      update_sgd(slice.weight, slice.moments[0].second, slice.gradient, factors);
  }
}

void Optimizer::update_early(double learning_rate) {
  if (worker_ && !options_.delayed) early_ = factors(learning_rate, 1);
}

void Optimizer::gradients_on_their_way(std::size_t bucket, std::function<void()> wait_until_whole) {
  if (!worker_) return wait_until_whole();
  host_job_[bucket] = worker_->submit([this, bucket, wait = std::move(wait_until_whole), factors = early_] {
    wait();
    for_parts_of(bucket, [&](const StatePart& part) {
      if (!part.on_host) return;
      if (!part.gradient.is_alias_of(part.device_gradient)) part.gradient.copy_(part.device_gradient);
      if (factors) update_part(part, *factors);
    });
  });
}

void Optimizer::wait_for_gradients() {
  if (worker_) worker_->wait_for_all();
}

void Optimizer::update(double learning_rate, double gradient_scale) {
  TORCH_INTERNAL_ASSERT(!unusable_, "the host's state was updated in a step that was skipped");
  const UpdateFactors factors = this->factors(learning_rate, gradient_scale);
  const std::size_t buckets = registry_.buckets().size();
  if (worker_ && !options_.delayed && !early_)
    for (std::size_t bucket = 0; bucket < buckets; ++bucket)
      host_job_[bucket] = worker_->submit([this, bucket, factors] {
        for_parts_of(bucket, [&](const StatePart& part) {
          if (part.on_host) update_part(part, factors);
        });
      });
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    for_parts_of(bucket, [&](const StatePart& part) {
      if (!part.on_host) update_part(part, factors);
    });
    if (worker_) worker_->wait_for(host_job_[bucket]);
    publish(bucket);
  }
  early_.reset();
  ++updates_;
  if (options_.delayed && worker_) {
    for (std::size_t bucket = 0; bucket < buckets; ++bucket)
      worker_->submit([this, bucket, factors] {
        for_parts_of(bucket, [&](const StatePart& part) {
          if (part.on_host) update_part(part, factors);
        });
      });
    delayed_update_runs_ = true;
  }
  for (PendingWork& gather : gathers_) gather.wait();
  gathers_.clear();
}

void Optimizer::skip() {
  unusable_ = early_.has_value();
  early_.reset();
}

void Optimizer::finish_delayed() {
  if (!delayed_update_runs_) return;
  worker_->wait_for_all();
  delayed_update_runs_ = false;
  publish_all();
}

void Optimizer::publish(std::size_t index) {
  for_parts_of(index, [](const StatePart& part) {
    if (part.has_master()) part.parameter.copy_(part.weight);
  });
  // With ZeRO 3 what is whole is gathered from the shards when it is used.
  const bool holds_whole = sharding_.stage == 1 || sharding_.stage == 2;
  if (!holds_whole || options_.skip_gather) return;
  const Bucket& bucket = registry_.buckets()[index];
  gathers_.push_back(sharding_.shard->all_gather_in_place_async(bucket.values));
}

void Optimizer::publish_all() {
  for (std::size_t bucket = 0; bucket < registry_.buckets().size(); ++bucket) publish(bucket);
  for (PendingWork& gather : gathers_) gather.wait();
  gathers_.clear();
}

void Optimizer::parameters_from_masters() { publish_all(); }

}  // namespace runtime
