#include "runtime/kernels/layer_norm_kernels.h"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

/// Partial sums that run side by side: a sum in one register would wait for each addition.
constexpr std::int64_t lanes = 64;

template <class Element>
struct Rows {
  const Element *g, *x, *mean, *scale, *weight, *beside;  ///< `beside` may be null
  Element* gx;
  Wide<Element>*weight_gradient, *bias_gradient;
  std::int64_t count, width;
};

template <class Real>
struct Sums {
  Real gradient = 0, projection = 0;
};

/// Σ g·w and Σ g·w·x̂ of a row.
template <class Element>
DSPLAN_INLINE Sums<Wide<Element>> sums_of(const Element* __restrict g, const Element* __restrict x,
                                          const Element* __restrict weight, std::int64_t width,
                                          Wide<Element> mean, Wide<Element> scale) {
  using Real = Wide<Element>;
  Real gradient[lanes] = {}, projection[lanes] = {};
  const std::int64_t whole = width / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Real term = widen(g[i + lane]) * widen(weight[i + lane]);
      gradient[lane] += term;
      projection[lane] += term * ((widen(x[i + lane]) - mean) * scale);
    }
  Sums<Real> total;
  for (std::int64_t i = whole; i < width; ++i) {
    const Real term = widen(g[i]) * widen(weight[i]);
    total.gradient += term;
    total.projection += term * ((widen(x[i]) - mean) * scale);
  }
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    total.gradient += gradient[lane];
    total.projection += projection[lane];
  }
  return total;
}

/// ∂/∂x = scale · (g·w − mean(g·w) − x̂ · mean(g·w·x̂)) with x̂ = (x − mean) · scale.
template <bool has_other, class Element>
DSPLAN_INLINE void backward_row(const Element* __restrict g, const Element* __restrict x,
                                const Element* __restrict weight, const Element* __restrict beside,
                                Element* __restrict gx, Wide<Element>* __restrict weight_gradient,
                                Wide<Element>* __restrict bias_gradient, std::int64_t width,
                                Wide<Element> mean, Wide<Element> scale) {
  using Real = Wide<Element>;
  const Sums<Real> sums = sums_of(g, x, weight, width, mean, scale);
  const Real mean_gradient = sums.gradient / static_cast<Real>(width),
             mean_projection = sums.projection / static_cast<Real>(width);
  for (std::int64_t i = 0; i < width; ++i) {
    const Real gradient = widen(g[i]), normal = (widen(x[i]) - mean) * scale;
    weight_gradient[i] += gradient * normal;
    bias_gradient[i] += gradient;
    Real result = scale * (gradient * widen(weight[i]) - mean_gradient - normal * mean_projection);
    if constexpr (has_other) result += widen(beside[i]);
    gx[i] = static_cast<Element>(result);
  }
}

template <bool has_other, class Element>
DSPLAN_INLINE void backward(const Rows<Element>& rows) {
  const std::int64_t width = rows.width;
  for (std::int64_t row = 0; row < rows.count; ++row)
    backward_row<has_other>(rows.g + row * width, rows.x + row * width, rows.weight,
                            has_other ? rows.beside + row * width : nullptr, rows.gx + row * width,
                            rows.weight_gradient, rows.bias_gradient, width, widen(rows.mean[row]),
                            widen(rows.scale[row]));
}

#define DSPLAN_LAYER_NORM(Element)                                     \
  DSPLAN_VECTOR_CLONES void backward_rows(const Rows<Element>& rows) { \
    if (rows.beside != nullptr)                                        \
      backward<true>(rows);                                            \
    else                                                               \
      backward<false>(rows);                                           \
  }
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_LAYER_NORM)

}  // namespace

LayerNormGradients layer_norm_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                                       const at::Tensor& mean, const at::Tensor& scale,
                                       const at::Tensor& weight, const at::Tensor& beside) {
  const at::Tensor dense_gradient = output_gradient.contiguous(), x = input.contiguous();
  const at::Tensor other = beside.defined() ? beside.contiguous() : at::Tensor();
  const std::int64_t rows = x.size(0), width = x.size(1);
  TORCH_INTERNAL_ASSERT(mean.scalar_type() == x.scalar_type() && scale.scalar_type() == x.scalar_type(),
                        "moments of another type");
  // Rows are dealt out to the threads in equal runs, each with sums of its own, so that the result depends
  // on the number of threads alone.
  const std::int64_t parts = std::clamp<std::int64_t>(rows / 16, 1, at::get_num_threads());
  const auto options = x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor sums = at::zeros({2, parts, width}, options);
  LayerNormGradients gradients;
  gradients.x = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "layer_norm_backward", [&] {
    const auto* g = dense_gradient.const_data_ptr<scalar_t>();
    const auto* in = x.const_data_ptr<scalar_t>();
    const auto* means = mean.const_data_ptr<scalar_t>();
    const auto* scales = scale.const_data_ptr<scalar_t>();
    const auto* w = weight.const_data_ptr<scalar_t>();
    const auto* more = other.defined() ? other.const_data_ptr<scalar_t>() : nullptr;
    auto* gx = gradients.x.data_ptr<scalar_t>();
    auto* sum = sums.data_ptr<Wide<scalar_t>>();
    at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        const std::int64_t first = rows * part / parts, last = rows * (part + 1) / parts,
                           skip = first * width;
        backward_rows(Rows<scalar_t>{g + skip, in + skip, means + first, scales + first, w,
                                     more != nullptr ? more + skip : nullptr, gx + skip, sum + part * width,
                                     sum + (parts + part) * width, last - first, width});
      }
    });
  });
  const at::Tensor both = parts == 1 ? sums.view({2, width}) : sums.sum(1);
  gradients.weight = both[0];
  gradients.bias = both[1];
  return gradients;
}

}  // namespace runtime::kernels
