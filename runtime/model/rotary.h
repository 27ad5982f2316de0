// Rotary position embedding (Su et al. 2021) in Hugging Face's half-split layout: dimension i of the first
// half of a head turns with dimension i of the second.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "specs/language/model.h"

namespace runtime {

class RotaryTable {
 public:
  /// Angles for positions 0 … length − 1, in fp32, or fp64 where `type` is.
  RotaryTable(const specs::RotarySpec& spec, std::int64_t head_dim, std::int64_t length, at::ScalarType type);

  /// Turns heads [sequences, length, heads, head_dim], a view into rows of one matrix, in place; `direction`
  /// −1 turns back, which is the gradient.
  void rotate(const at::Tensor& heads, int direction) const;

 private:
  at::Tensor cosine_;  ///< [length, rotated_dim / 2]
  at::Tensor sine_;
};

/// Radians per position of each pair of dimensions, with the spec's scaling. "linear" divides all by the
/// factor; "llama3" divides those with a long wavelength and blends in between (Llama 3.1).
std::vector<double> rotary_frequencies(const specs::RotarySpec& spec, std::int64_t head_dim);

}  // namespace runtime
