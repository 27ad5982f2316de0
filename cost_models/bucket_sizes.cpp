#include "cost_models/bucket_sizes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cost_models/parameters.h"
#include "specs/language/catalog.h"

namespace cost_models {
namespace {

/// Dense parameters of the last decoder layer on a rank.
std::int64_t layer_elements(const specs::ModelSpec& model, const specs::RegularPlacement& placement) {
  ShardDegrees degrees = shard_degrees(model, placement.modules, placement.tensor);
  degrees.expert = placement.expert;
  degrees.expert_tensor = placement.expert_tensor;
  const std::int64_t last = model.encoder_layers + model.layers - 1;
  return parameters_of_units(model, {specs::attention_unit(last), specs::attention_unit(last + 1)}, degrees)
      .dense;
}

std::int64_t bytes_of(const specs::StackBucket& bucket, std::int64_t wanted_elements, double element_bytes,
                      const specs::ModelSpec& model, const specs::RegularPlacement& placement) {
  std::int64_t elements = wanted_elements;
  if (elements == 0) {
    if (bucket.bytes > 0) return bucket.bytes;
    elements = bucket.layer ? layer_elements(model, placement)
                            : std::max(bucket.elements,
                                       bucket.elements_per_replica * placement.data * placement.context);
  }
  return static_cast<std::int64_t>(std::llround(static_cast<double>(elements) * element_bytes));
}

}  // namespace

double reduction_bytes(const specs::TrainingSpec& training) {
  const bool mixed = specs::keeps_master_weights(training.precision);
  return static_cast<double>(specs::storage_bytes(mixed ? training.reduction_precision : training.precision));
}

specs::StackSpec catalog_profile(const StackProfile& profile) {
  const auto alike = [&profile]() -> const char* {
    switch (profile.memory) {
      case MemoryRules::fsdp2:
        return "fsdp2";
      case MemoryRules::deepspeed:
        return "deepspeed";
      case MemoryRules::megatron_deepspeed:
        return "megatron-deepspeed";
      case MemoryRules::dsrun:
        return "dsrun";
      case MemoryRules::megatron_core:
        break;
    }
    return "megatron-core";
  };
  for (const std::string& name : {profile.name, profile.stand_in, std::string(alike())})
    if (specs::Result<specs::StackSpec> stack = specs::catalog_stack(name)) return std::move(*stack);
  return {};
}

specs::BucketSizes bucket_sizes(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                const specs::RegularPlacement& placement) {
  specs::BucketSizes sizes;
  if (placement.data * placement.context <= 1) return sizes;
  const specs::TrainingSpec& training = experiment.training;
  sizes.gradient_bucket_bytes = bytes_of(stack.gradient_bucket, training.gradient_bucket_elements,
                                         reduction_bytes(training), experiment.model, placement);
  sizes.gather_bucket_bytes =
      bytes_of(stack.gather_bucket, training.gather_bucket_elements,
               static_cast<double>(specs::storage_bytes(training.precision)), experiment.model, placement);
  return sizes;
}

}  // namespace cost_models
