#include "runtime/kernels/softmax_kernels.h"

#include <algorithm>
#include <limits>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

constexpr std::int64_t lanes = 64;

/// Passes over NaN, which the sum of exponentials then meets.
template <class Element>
DSPLAN_INLINE Wide<Element> row_maximum(const Element* __restrict x, std::int64_t count) {
  using Real = Wide<Element>;
  Real partial[lanes];
  for (Real& value : partial) value = -std::numeric_limits<Real>::infinity();
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Real value = widen(x[i + lane]);
      partial[lane] = partial[lane] > value ? partial[lane] : value;
    }
  for (std::int64_t i = whole; i < count; ++i) partial[0] = std::max(partial[0], widen(x[i]));
  Real highest = partial[0];
  for (const Real value : partial) highest = highest > value ? highest : value;
  return highest;
}

template <class Element>
DSPLAN_INLINE Wide<Element> sum_of_exponentials(const Element* __restrict x, std::int64_t count,
                                                Wide<Element> maximum) {
  using Real = Wide<Element>;
  Real partial[lanes] = {};
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      partial[lane] += exponential(widen(x[i + lane]) - maximum);
  Real total = 0;
  for (std::int64_t i = whole; i < count; ++i) total += exponential(widen(x[i]) - maximum);
  for (const Real sum : partial) total += sum;
  return total;
}

template <class Element>
DSPLAN_INLINE void gradient_of(Element* __restrict x, std::int64_t count, Wide<Element> maximum,
                               Wide<Element> scale) {
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = static_cast<Element>(exponential(widen(x[i]) - maximum) * scale);
}

#define DSPLAN_SOFTMAX(Element)                                                                    \
  DSPLAN_VECTOR_CLONES Wide<Element> maximum_of_row(const Element* x, std::int64_t count) {        \
    return row_maximum(x, count);                                                                  \
  }                                                                                                \
  DSPLAN_VECTOR_CLONES Wide<Element> exponentials_of_row(const Element* x, std::int64_t count,     \
                                                         Wide<Element> maximum) {                  \
    return sum_of_exponentials(x, count, maximum);                                                 \
  }                                                                                                \
  DSPLAN_VECTOR_CLONES void gradient_of_row(Element* x, std::int64_t count, Wide<Element> maximum, \
                                            Wide<Element> scale) {                                 \
    gradient_of(x, count, maximum, scale);                                                         \
  }
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_SOFTMAX)

}  // namespace

RowStatistics row_statistics(const at::Tensor& input, const at::Tensor& target) {
  const at::Tensor logits = input.contiguous();
  const std::int64_t rows = logits.size(0), columns = logits.size(1);
  const auto options = logits.options().dtype(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  RowStatistics statistics{at::empty({rows}, options), at::empty({rows}, options),
                           at::empty({rows}, options)};
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, logits.scalar_type(), "row_statistics", [&] {
    using Real = Wide<scalar_t>;
    const auto* x = logits.const_data_ptr<scalar_t>();
    const auto* targets = target.const_data_ptr<std::int64_t>();
    auto* maximum = statistics.maximum.data_ptr<Real>();
    auto* exponentials = statistics.exponentials.data_ptr<Real>();
    auto* at_target = statistics.target.data_ptr<Real>();
    at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const scalar_t* logit = x + row * columns;
        maximum[row] = maximum_of_row(logit, columns);
        // Where all columns are padding, −∞, no difference from the maximum is a number.
        exponentials[row] = maximum[row] == -std::numeric_limits<Real>::infinity()
                                ? Real(0)
                                : exponentials_of_row(logit, columns, maximum[row]);
        at_target[row] = targets[row] >= 0 ? widen(logit[targets[row]]) : Real(0);
      }
    });
  });
  return statistics;
}

void turn_into_gradient(const at::Tensor& logits, const at::Tensor& target, const at::Tensor& maximum,
                        const at::Tensor& scale, const at::Tensor& weight) {
  TORCH_INTERNAL_ASSERT(logits.is_contiguous(), "logits are turned into their gradient in place");
  const std::int64_t columns = logits.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, logits.scalar_type(), "turn_into_gradient", [&] {
    using Real = Wide<scalar_t>;
    auto* x = logits.data_ptr<scalar_t>();
    const auto* targets = target.const_data_ptr<std::int64_t>();
    const auto* highest = maximum.const_data_ptr<Real>();
    const auto* factor = scale.const_data_ptr<Real>();
    const auto* at_target = weight.const_data_ptr<Real>();
    at::parallel_for(0, logits.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        scalar_t* logit = x + row * columns;
        const bool here = targets[row] >= 0;
        const Real target_logit = here ? widen(logit[targets[row]]) : Real(0);
        gradient_of_row(logit, columns, highest[row], factor[row]);
        // Rounded once, from the logit itself.
        if (here)
          logit[targets[row]] =
              static_cast<scalar_t>(exponential(target_logit - highest[row]) * factor[row] - at_target[row]);
      }
    });
  });
}

}  // namespace runtime::kernels
