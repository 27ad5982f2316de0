// Dropout whose mask is a function of (seed, site, step, global position): the same for any placement and for
// a recomputed forward pass. Nothing is saved; backward makes the mask anew.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runtime/model/forward_context.h"

namespace runtime {

class Dropout {
 public:
  /// `site` names the place in the model ("transformer.h.3.attn").
  Dropout(double probability, std::uint64_t seed, std::string_view site);

  /// x [rows, width] holds tokens first_row … of the micro-batch.
  at::Tensor forward(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const;

 private:
  struct Function;
  at::Tensor apply(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const;

  double probability_;
  std::uint64_t key_;
};

}  // namespace runtime
