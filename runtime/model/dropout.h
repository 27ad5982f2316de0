// Dropout whose mask is a function of (seed, site, step, global position): the same for any placement and for
// a recomputed forward pass. Nothing is saved; backward makes the mask anew.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runtime/model/forward_context.h"

namespace runtime {

class Dropout {
 public:
  /// `site` names the place in the model ("transformer.h.3.attn").
  Dropout(double probability, std::uint64_t seed, std::string_view site);

  bool active(const ForwardContext& context) const { return probability_ > 0 && context.training; }

  /// x [rows, width] holds tokens first_row … of the micro-batch.
  at::Tensor forward(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const;

  /// Drops and scales in place, outside of autograd. x [rows, width], contiguous; `first_element(row)` is the
  /// number, in the site's global order, of the row's first element.
  void drop_(const at::Tensor& x, const std::function<std::int64_t(std::int64_t row)>& first_element,
             const ForwardContext& context) const;

 private:
  struct Function;
  struct Mask;
  Mask mask(const ForwardContext& context) const;
  at::Tensor apply(const at::Tensor& x, std::int64_t first_row, const ForwardContext& context) const;

  double probability_;
  std::uint64_t key_;
};

}  // namespace runtime
