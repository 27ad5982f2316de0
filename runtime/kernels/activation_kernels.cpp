#include "runtime/kernels/activation_kernels.h"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "runtime/kernels/vector_math.h"

namespace runtime::kernels {

namespace {

using specs::Activation;

constexpr std::int64_t elements_per_task = 16384;

/// f(x) and f′(x).
template <class Real>
struct ValueAndSlope {
  Real value, slope;
};

template <Activation activation, class Real>
DSPLAN_INLINE ValueAndSlope<Real> evaluate(Real x) {
  if constexpr (activation == Activation::relu) return {x > 0 ? x : 0, x > 0 ? Real(1) : Real(0)};
  if constexpr (activation == Activation::squared_relu) {
    const Real positive = x > 0 ? x : 0;
    return {positive * positive, 2 * positive};
  }
  if constexpr (activation == Activation::silu) {
    const Real s = sigmoid(x);
    return {x * s, s * (1 + x * (1 - s))};
  }
  // ½ x (1 + tanh u) = x · sigmoid(2u) with u = √(2/π) (x + 0.044715 x³): Hendrycks and Gimpel 2016.
  constexpr Real twice_root = Real(2 * 0.79788456080286535588), cubic = Real(0.044715);
  const Real square = x * x;
  const Real s = sigmoid(twice_root * x * (1 + cubic * square));
  return {x * s, s + x * s * (1 - s) * twice_root * (1 + 3 * cubic * square)};
}

template <Activation activation, class Element>
DSPLAN_INLINE void forward(const Element* __restrict x, Element* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<Element>(evaluate<activation>(widen(x[i])).value);
}

template <Activation activation, class Element>
DSPLAN_INLINE void forward_gated(const Element* __restrict x, const Element* __restrict gate_factor,
                                 Element* __restrict y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<Element>(evaluate<activation>(widen(x[i])).value * widen(gate_factor[i]));
}

template <Activation activation, class Element>
DSPLAN_INLINE void backward(const Element* __restrict g, const Element* __restrict x, Element* __restrict gx,
                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    gx[i] = static_cast<Element>(widen(g[i]) * evaluate<activation>(widen(x[i])).slope);
}

template <Activation activation, class Element>
DSPLAN_INLINE void backward_gated(const Element* __restrict g, const Element* __restrict x,
                                  const Element* __restrict up, Element* __restrict gx,
                                  Element* __restrict gup, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto f = evaluate<activation>(widen(x[i]));
    gx[i] = static_cast<Element>(widen(g[i]) * widen(up[i]) * f.slope);
    gup[i] = static_cast<Element>(widen(g[i]) * f.value);
  }
}

#define DSPLAN_FOR_ACTIVATION(call)          \
  switch (activation) {                      \
    case Activation::relu:                   \
      return call(Activation::relu);         \
    case Activation::squared_relu:           \
      return call(Activation::squared_relu); \
    case Activation::silu:                   \
      return call(Activation::silu);         \
    default:                                 \
      return call(Activation::gelu_tanh);    \
  }

#define DSPLAN_ACTIVATION(Element)                                                                          \
  DSPLAN_VECTOR_CLONES void forward_range(                                                                  \
      Activation activation, const Element* x, Element* y,                                                  \
      std::int64_t count){DSPLAN_FOR_ACTIVATION(DSPLAN_CALL_FORWARD)} DSPLAN_VECTOR_CLONES void             \
  forward_gated_range(                                                                                      \
      Activation activation, const Element* x, const Element* up, Element* y,                               \
      std::int64_t count){DSPLAN_FOR_ACTIVATION(DSPLAN_CALL_FORWARD_GATED)} DSPLAN_VECTOR_CLONES void       \
  backward_range(Activation activation, const Element* g, const Element* x, Element* gx,                    \
                 std::int64_t count){DSPLAN_FOR_ACTIVATION(DSPLAN_CALL_BACKWARD)} DSPLAN_VECTOR_CLONES void \
  backward_gated_range(Activation activation, const Element* g, const Element* x, const Element* up,        \
                       Element* gx, Element* gup, std::int64_t count) {                                     \
    DSPLAN_FOR_ACTIVATION(DSPLAN_CALL_BACKWARD_GATED)                                                       \
  }
#define DSPLAN_CALL_FORWARD(kind) forward<kind>(x, y, count)
#define DSPLAN_CALL_FORWARD_GATED(kind) forward_gated<kind>(x, up, y, count)
#define DSPLAN_CALL_BACKWARD(kind) backward<kind>(g, x, gx, count)
#define DSPLAN_CALL_BACKWARD_GATED(kind) backward_gated<kind>(g, x, up, gx, gup, count)
DSPLAN_FOR_ELEMENT_TYPES(DSPLAN_ACTIVATION)

}  // namespace

at::Tensor activate(const at::Tensor& input, Activation activation, bool gated) {
  const at::Tensor x = input.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1) / (gated ? 2 : 1);
  at::Tensor output = at::empty({rows, width}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "activate", [&] {
    const auto* in = x.const_data_ptr<scalar_t>();
    auto* out = output.data_ptr<scalar_t>();
    if (!gated)
      return at::parallel_for(0, x.numel(), elements_per_task, [&](std::int64_t begin, std::int64_t end) {
        forward_range(activation, in + begin, out + begin, end - begin);
      });
    const std::int64_t grain =
        std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, width));
    at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        forward_gated_range(activation, in + 2 * row * width, in + (2 * row + 1) * width, out + row * width,
                            width);
    });
  });
  return output;
}

at::Tensor activate_backward(const at::Tensor& output_gradient, const at::Tensor& input,
                             Activation activation, bool gated) {
  const at::Tensor dense_gradient = output_gradient.contiguous(), x = input.contiguous();
  const std::int64_t rows = x.size(0), width = x.size(1) / (gated ? 2 : 1);
  at::Tensor gradient = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, x.scalar_type(), "activate_backward", [&] {
    const auto* g = dense_gradient.const_data_ptr<scalar_t>();
    const auto* in = x.const_data_ptr<scalar_t>();
    auto* out = gradient.data_ptr<scalar_t>();
    if (!gated)
      return at::parallel_for(0, x.numel(), elements_per_task, [&](std::int64_t begin, std::int64_t end) {
        backward_range(activation, g + begin, in + begin, out + begin, end - begin);
      });
    const std::int64_t grain =
        std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, width));
    at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t left = 2 * row * width, right = left + width;
        backward_gated_range(activation, g + row * width, in + left, in + right, out + left, out + right,
                             width);
      }
    });
  });
  return gradient;
}

}  // namespace runtime::kernels
