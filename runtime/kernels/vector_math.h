// What the loops of the kernels are made of, written so that the compiler vectorises them.
//
// A kernel is an always-inline template over its element type, and one function of each type that names it
// and is compiled for several instruction sets (function multi-versioning takes no templates). 16-bit
// elements are widened to fp32, worked on, and rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DSPLAN_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DSPLAN_VECTOR_CLONES
#endif
#define DSPLAN_INLINE [[gnu::always_inline]] inline

/// Expands `kernel(type)` for each type that tensors are kept in.
#define DSPLAN_FOR_ELEMENT_TYPES(kernel) kernel(float) kernel(double) kernel(c10::BFloat16) kernel(c10::Half)

namespace runtime::kernels {

/// In which an element is worked on.
template <class Element>
using Wide = std::conditional_t<std::is_same_v<Element, double>, double, float>;

template <class Element>
DSPLAN_INLINE Wide<Element> widen(Element x) {
  return static_cast<Wide<Element>>(x);
}

DSPLAN_INLINE double exponential(double x) { return std::exp(x); }

/// To 2 units in the last place; 0 below e^−87. e^x = 2^n · e^r with |r| ≤ ½ ln 2; e^r by its Taylor
/// polynomial of degree 7, whose remainder is below 3 · 10⁻⁹.
DSPLAN_INLINE float exponential(float x) {
  constexpr float lowest = -87.0F, highest = 88.0F;
  constexpr float to_integer =
      12582912.0F;  // 1.5 · 2^23: adding it leaves the nearest integer in the low bits
  constexpr float log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  float bounded = x < lowest ? lowest : x;
  bounded = bounded > highest ? highest : bounded;
  const float shifted = bounded * log2_e + to_integer;
  const float n = shifted - to_integer;
  const float r = (bounded - n * ln2_high) - n * ln2_low;
  float power = 1.0F / 5040;
  power = power * r + 1.0F / 720;
  power = power * r + 1.0F / 120;
  power = power * r + 1.0F / 24;
  power = power * r + 1.0F / 6;
  power = power * r + 0.5F;
  power = power * r + 1.0F;
  power = power * r + 1.0F;
  const auto exponent =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(to_integer) + 127;
  const float result = power * std::bit_cast<float>(exponent << 23);
  return x < lowest ? 0.0F : result;
}

template <class Real>
DSPLAN_INLINE Real sigmoid(Real x) {
  return 1 / (1 + exponential(-x));
}

}  // namespace runtime::kernels
