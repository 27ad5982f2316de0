// A parameter as one rank sees it: its part of the full tensor, and how its gradient relates to the full one.
//
// Everything that depends on where a parameter lives derives from the contract here: which extra reductions
// its gradient needs, who counts it in the gradient norm, what a checkpoint writes and reads.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "specs/plan/placement.h"

namespace runtime {

struct Bucket;

/// A half-open box inside a tensor's full shape.
struct ShardBox {
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> extent;
  bool operator==(const ShardBox&) const = default;
};

/// Each rank of `axis` holds a slice along `dim`. Where there are fewer slices than ranks (key and value
/// heads under a larger tensor degree), `replicas` consecutive ranks hold the same slice and each has a part
/// of the slice's gradient.
struct Sharded {
  specs::MeshAxis axis = specs::MeshAxis::tensor;
  std::int64_t dim = 0;
  std::int64_t replicas = 1;
  bool operator==(const Sharded&) const = default;
};

/// Every rank holds the whole tensor. Over the axes named, each rank's gradient is a part of the sum; over
/// all others, every rank's gradient is the whole.
struct Replicated {
  std::vector<specs::MeshAxis> partial_over;
  bool operator==(const Replicated&) const = default;
};

/// Over the data and context axes the gradient of every parameter is a part of the sum; the contract says the
/// rest.
using GradientContract = std::variant<Sharded, Replicated>;

enum class InitialValue : std::uint8_t { zeros, ones, normal };

/// What a unit of the model declares of a parameter.
struct ParameterSpec {
  std::string name;                        ///< Hugging Face-like, the same in every placement
  std::vector<std::int64_t> global_shape;  ///< one or two dims, without padding
  GradientContract contract;
  ShardBox box;                           ///< this rank's part of the global shape
  std::vector<std::int64_t> local_shape;  ///< the box's extent; dim 0 may have padding rows after it
  InitialValue initial = InitialValue::normal;
  double initial_deviation = 0.02;
  bool weight_decay = true;
  bool tied = false;    ///< another stage holds a copy, whose gradient is added to this one's
  bool primary = true;  ///< false for the copy of a tied parameter on the last stage
};

/// `full` cut along dim 0 or 1 into `parts` equal slices; slice `index`.
ShardBox slice_of(const std::vector<std::int64_t>& full, std::int64_t dim, std::int64_t parts,
                  std::int64_t index);

struct Parameter {
  ParameterSpec spec;
  at::Tensor value;     ///< local shape, training precision; a view into its bucket where that holds it whole
  at::Tensor gradient;  ///< local shape, gradient precision; likewise
  std::int64_t bucket = -1;        ///< index into the registry's buckets
  std::int64_t bucket_offset = 0;  ///< elements from the bucket's start

  std::int64_t numel() const;        ///< of the local shape, padding included
  std::int64_t valid_numel() const;  ///< of the box; padding rows come after it
  const std::string& name() const { return spec.name; }
};

/// Where a rank stands among those that hold the same or other parts of a parameter.
struct TensorPosition {
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

/// True for the one rank of the tensor axis (and of the two ends, for a tied parameter) that answers for this
/// part of the parameter: counts it in the norm and writes it to a checkpoint.
bool answers_for(const ParameterSpec& spec, const TensorPosition& position);

}  // namespace runtime
