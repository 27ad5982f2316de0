#include "runtime/kernels/rms_norm_kernels.h"

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

/// Partial sums that run side by side: a sum in one register would wait for each addition.
constexpr std::int64_t lanes = 64;

template <class Real, class Term>
DSPLAN_INLINE Real sum_of(std::int64_t count, Term term) {
  Real partial[lanes] = {};
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) partial[lane] += term(i + lane);
  Real total = 0;
  for (std::int64_t i = whole; i < count; ++i) total += term(i);
  for (const Real sum : partial) total += sum;
  return total;
}

template <class Element>
DSPLAN_INLINE void forward(const Element* __restrict x, const Element* __restrict weight,
                           Element* __restrict y, Wide<Element>* __restrict scale, std::int64_t rows,
                           std::int64_t width, double epsilon) {
  using Real = Wide<Element>;
  for (std::int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const Real squares = sum_of<Real>(width, [&](std::int64_t i) { return widen(x[i]) * widen(x[i]); });
    const Real s = 1 / std::sqrt(squares / static_cast<Real>(width) + static_cast<Real>(epsilon));
    scale[row] = s;
    for (std::int64_t i = 0; i < width; ++i) y[i] = static_cast<Element>(widen(x[i]) * s * widen(weight[i]));
  }
}

/// y = x·s·w with s = (mean x² + ε)^−½, so ds/dx = −s³·x / width. Adds to `weight_gradient`.
template <bool has_other, class Element>
DSPLAN_INLINE void backward(const Element* __restrict g, const Element* __restrict x,
                            const Wide<Element>* __restrict scale, const Element* __restrict weight,
                            const Element* __restrict beside, Element* __restrict gx,
                            Wide<Element>* __restrict weight_gradient, std::int64_t rows,
                            std::int64_t width) {
  using Real = Wide<Element>;
  for (std::int64_t row = 0; row < rows; ++row, g += width, x += width, gx += width) {
    const Real s = scale[row];
    const Real dot =
        sum_of<Real>(width, [&](std::int64_t i) { return widen(g[i]) * widen(weight[i]) * widen(x[i]); });
    const Real projection = dot * s * s / static_cast<Real>(width);
    for (std::int64_t i = 0; i < width; ++i) {
      const Real gradient = widen(g[i]), value = widen(x[i]);
      weight_gradient[i] += gradient * value * s;
      Real result = s * (gradient * widen(weight[i]) - value * projection);
      if constexpr (has_other) result += widen(beside[i]);
      gx[i] = static_cast<Element>(result);
    }
    if constexpr (has_other) beside += width;
  }
}

#define DSPLAN_RMS_NORM(Element)                                                                          \
  DSPLAN_VECTOR_CLONES void forward_rows(const Element* x, const Element* weight, Element* y,             \
                                         Wide<Element>* scale, std::int64_t rows, std::int64_t width,     \
                                         double epsilon) {                                                \
    forward(x, weight, y, scale, rows, width, epsilon);                                                   \
  }                                                                                                       \
  DSPLAN_VECTOR_CLONES void backward_rows(const Element* g, const Element* x, const Wide<Element>* scale, \
                                          const Element* weight, const Element* beside, Element* gx,      \
                                          Wide<Element>* weight_gradient, std::int64_t rows,              \
                                          std::int64_t width) {                                           \
    if (beside != nullptr)                                                                                \
      backward<true>(g, x, scale, weight, beside, gx, weight_gradient, rows, width);                      \
    else                                                                                                  \
      backward<false>(g, x, scale, weight, beside, gx, weight_gradient, rows, width);                     \
  }
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_RMS_NORM)

at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace

RmsNormOutput rms_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon) {
  const at::Tensor x = input.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1);
  RmsNormOutput output{at::empty(x.sizes(), x.options()), at::empty({rows, 1}, wide_type(x))};
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "rms_norm", [&] {
    const auto* in = x.const_data_ptr<scalar_t>();
    const auto* w = weight.const_data_ptr<scalar_t>();
    auto* y = output.y.data_ptr<scalar_t>();
    auto* scale = output.scale.data_ptr<Wide<scalar_t>>();
    at::parallel_for(0, rows, 16, [&](std::int64_t begin, std::int64_t end) {
      forward_rows(in + begin * width, w, y + begin * width, scale + begin, end - begin, width, epsilon);
    });
  });
  return output;
}

RmsNormGradients rms_norm_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                                   const at::Tensor& scale, const at::Tensor& weight,
                                   const at::Tensor& beside) {
  const at::Tensor other = beside.defined() ? beside.contiguous() : at::Tensor();
  const at::Tensor dense_gradient = output_gradient.contiguous(), x = input.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1);
  // Rows are dealt out to the threads in equal runs, each with a sum of its own, so that the result depends
  // on the number of threads alone.
  const std::int64_t parts = std::clamp<std::int64_t>(rows / 16, 1, at::get_num_threads());
  const at::Tensor sums = at::zeros({parts, width}, scale.options());
  RmsNormGradients gradients{at::empty(x.sizes(), x.options()), at::Tensor()};
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "rms_norm_backward", [&] {
    using Real = Wide<scalar_t>;
    const auto* g = dense_gradient.const_data_ptr<scalar_t>();
    const auto* in = x.const_data_ptr<scalar_t>();
    const auto* s = scale.const_data_ptr<Real>();
    const auto* w = weight.const_data_ptr<scalar_t>();
    const auto* more = other.defined() ? other.const_data_ptr<scalar_t>() : nullptr;
    auto* gx = gradients.x.data_ptr<scalar_t>();
    auto* sum = sums.data_ptr<Real>();
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        const std::int64_t first = rows * part / parts, last = rows * (part + 1) / parts;
        backward_rows(g + first * width, in + first * width, s + first, w,
                      more != nullptr ? more + first * width : nullptr, gx + first * width,
                      sum + part * width, last - first, width);
      }
    });
  });
  gradients.weight = parts == 1 ? sums.view({width}) : sums.sum(0);
  return gradients;
}

}  // namespace runtime::kernels
