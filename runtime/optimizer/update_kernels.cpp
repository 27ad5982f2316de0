// Compiled with -ffp-contract=off, so that vector body and scalar tail round alike.
#include "runtime/optimizer/update_kernels.h"

#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define DSPLAN_X86 1
#endif

namespace runtime {

namespace {

constexpr std::int64_t grain = 1 << 16;

template <class Real>
struct AdamwFactors {
  Real keep, step_size, scale, beta1, beta2, one_less_beta1, one_less_beta2, inverse_root, epsilon;

  explicit AdamwFactors(const UpdateFactors& f)
      : keep(static_cast<Real>(1 - f.learning_rate * f.weight_decay)),
        step_size(static_cast<Real>(f.learning_rate / (1 - std::pow(f.beta1, static_cast<double>(f.step))))),
        scale(static_cast<Real>(f.gradient_scale)),
        beta1(static_cast<Real>(f.beta1)),
        beta2(static_cast<Real>(f.beta2)),
        one_less_beta1(static_cast<Real>(1 - f.beta1)),
        one_less_beta2(static_cast<Real>(1 - f.beta2)),
        inverse_root(static_cast<Real>(1 / std::sqrt(1 - std::pow(f.beta2, static_cast<double>(f.step))))),
        epsilon(static_cast<Real>(f.epsilon)) {}
};

template <class Real, class Gradient>
[[gnu::always_inline]] inline void adamw(Real* __restrict w, Real* __restrict m, Real* __restrict v,
                                         const Gradient* __restrict gradient, std::int64_t count,
                                         const AdamwFactors<Real>& f) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Real g = static_cast<Real>(gradient[i]) * f.scale;
    m[i] = m[i] * f.beta1 + g * f.one_less_beta1;
    v[i] = v[i] * f.beta2 + g * g * f.one_less_beta2;
    w[i] = w[i] * f.keep - f.step_size * (m[i] / (std::sqrt(v[i]) * f.inverse_root + f.epsilon));
  }
}

template <class Real>
struct SgdFactors {
  Real rate, decay, scale, momentum;

  explicit SgdFactors(const UpdateFactors& f)
      : rate(static_cast<Real>(f.learning_rate)),
        decay(static_cast<Real>(f.weight_decay)),
        scale(static_cast<Real>(f.gradient_scale)),
        momentum(static_cast<Real>(f.momentum)) {}
};

template <class Real, class Gradient>
[[gnu::always_inline]] inline void sgd(Real* __restrict w, Real* __restrict b,
                                       const Gradient* __restrict gradient, std::int64_t count,
                                       const SgdFactors<Real>& f) {
  for (std::int64_t i = 0; i < count; ++i) {
    b[i] = b[i] * f.momentum + (static_cast<Real>(gradient[i]) * f.scale + w[i] * f.decay);
    w[i] = w[i] - f.rate * b[i];
  }
}

/// The same loops for each instruction set; the compiler makes vectors of them.
template <class Real>
struct Portable {
  template <class Gradient>
  static void adamw_range(Real* w, Real* m, Real* v, const Gradient* g, std::int64_t count,
                          const AdamwFactors<Real>& factors) {
    adamw(w, m, v, g, count, factors);
  }
  template <class Gradient>
  static void sgd_range(Real* w, Real* b, const Gradient* g, std::int64_t count,
                        const SgdFactors<Real>& factors) {
    sgd(w, b, g, count, factors);
  }
};

#ifdef DSPLAN_X86
template <class Real>
struct Avx2 {
  template <class Gradient>
  __attribute__((target("avx2"))) static void adamw_range(Real* w, Real* m, Real* v, const Gradient* g,
                                                          std::int64_t count,
                                                          const AdamwFactors<Real>& factors) {
    adamw(w, m, v, g, count, factors);
  }
  template <class Gradient>
  __attribute__((target("avx2"))) static void sgd_range(Real* w, Real* b, const Gradient* g,
                                                        std::int64_t count, const SgdFactors<Real>& factors) {
    sgd(w, b, g, count, factors);
  }
};

#define DSPLAN_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
template <class Real>
struct Avx512 {
  template <class Gradient>
  DSPLAN_AVX512 static void adamw_range(Real* w, Real* m, Real* v, const Gradient* g, std::int64_t count,
                                        const AdamwFactors<Real>& factors) {
    adamw(w, m, v, g, count, factors);
  }
  template <class Gradient>
  DSPLAN_AVX512 static void sgd_range(Real* w, Real* b, const Gradient* g, std::int64_t count,
                                      const SgdFactors<Real>& factors) {
    sgd(w, b, g, count, factors);
  }
};
#undef DSPLAN_AVX512
#endif

/// Calls body(kernels) with the kernels of an instruction set for weights of type Real.
template <class Real, class Body>
void with_kernels(InstructionSet instructions, Body body) {
#ifdef DSPLAN_X86
  if (instructions == InstructionSet::avx512) return body(Avx512<Real>{});
  if (instructions == InstructionSet::avx2) return body(Avx2<Real>{});
#endif
  body(Portable<Real>{});
}

/// Calls body(weight type pointer tag, gradient type pointer tag).
template <class Body>
void for_types(const at::Tensor& weight, const at::Tensor& gradient, Body body) {
  AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "optimizer weight", [&] {
    using Real = scalar_t;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, gradient.scalar_type(), "optimizer gradient",
                                    [&] { body(Real{}, gradient.const_data_ptr<scalar_t>()); });
  });
}

}  // namespace

const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found{InstructionSet::portable};
#ifdef DSPLAN_X86
    if (__builtin_cpu_supports("avx2")) found.push_back(InstructionSet::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      found.push_back(InstructionSet::avx512);
#endif
    return found;
  }();
  return sets;
}

void update_adamw(const at::Tensor& weight, const at::Tensor& first_moment, const at::Tensor& second_moment,
                  const at::Tensor& gradient, const UpdateFactors& factors, InstructionSet instructions) {
  for_types(weight, gradient, [&](auto real, const auto* g) {
    using Real = decltype(real);
    const AdamwFactors<Real> f(factors);
    auto* w = weight.data_ptr<Real>();
    auto* m = first_moment.data_ptr<Real>();
    auto* v = second_moment.data_ptr<Real>();
    with_kernels<Real>(instructions, [&](auto kernels) {
      at::parallel_for(0, weight.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
        kernels.adamw_range(w + begin, m + begin, v + begin, g + begin, end - begin, f);
      });
    });
  });
}

void update_sgd(const at::Tensor& weight, const at::Tensor& momentum, const at::Tensor& gradient,
                const UpdateFactors& factors, InstructionSet instructions) {
  for_types(weight, gradient, [&](auto real, const auto* g) {
    using Real = decltype(real);
    const SgdFactors<Real> f(factors);
    auto* w = weight.data_ptr<Real>();
    auto* b = momentum.data_ptr<Real>();
    with_kernels<Real>(instructions, [&](auto kernels) {
      at::parallel_for(0, weight.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
        kernels.sgd_range(w + begin, b + begin, g + begin, end - begin, f);
      });
    });
  });
}

double sum_of_squares(const at::Tensor& flat) {
  double total = 0;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, flat.scalar_type(), "sum_of_squares", [&] {
    constexpr std::int64_t lanes = 8;
    double sums[lanes] = {};
    const auto* x = flat.const_data_ptr<scalar_t>();
    const std::int64_t count = flat.numel();
    const std::int64_t whole = count / lanes * lanes;
    for (std::int64_t i = 0; i < whole; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const auto value = static_cast<double>(x[i + lane]);
        sums[lane] += value * value;
      }
    for (std::int64_t i = whole; i < count; ++i)
      sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    for (const double sum : sums) total += sum;
  });
  return total;
}

}  // namespace runtime
