// The weights and moments of an optimizer: where they lie, and which parameters they belong to.
//
// Each bucket's part that this rank answers for (all of it, or its shard) is one range on the device, or,
// with offload, two: the first eighths on the host, the rest on the device. What lies on the host is a copy
// of its own, gradients too; with 16-bit parameters the device's part has fp32 masters as well.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/model/parameter_registry.h"
#include "specs/language/training.h"

namespace runtime {

/// Elements [begin, end) of a parameter's flattened local shape and their state, as views.
struct StateSlice {
  const Parameter* parameter = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  at::Tensor weight;  ///< what the optimizer updates: master or parameter
  at::Tensor gradient;
  std::vector<std::pair<std::string, at::Tensor>> moments;  ///< "exp_avg", "exp_avg_sq" or "momentum"
};

/// A range of a bucket whose state lies in one place.
struct StatePart {
  std::size_t bucket = 0;
  BucketRange range;  ///< of the bucket
  bool on_host = false;
  at::Tensor parameter;        ///< on the device, in the precision of the training
  at::Tensor device_gradient;  ///< as the reduction leaves it
  at::Tensor weight;
  at::Tensor gradient;  ///< as the update reads it: the device's, or the host's copy
  std::vector<std::pair<std::string, at::Tensor>> moments;
  std::vector<StateSlice> slices;  ///< padding is in none

  bool has_master() const { return !weight.is_alias_of(parameter); }
};

struct StateLayout {
  std::vector<std::int64_t> eighths_on_host;  ///< by stage; empty: nothing anywhere
  bool aliases_device = false;  ///< fault injection: what should lie on the host shares the device's memory
};

/// The shard of each bucket; masters hold the initial values.
std::vector<StatePart> make_optimizer_state(const ParameterRegistry& registry, specs::OptimizerKind kind,
                                            const StateLayout& layout, std::uint64_t seed);

}  // namespace runtime
