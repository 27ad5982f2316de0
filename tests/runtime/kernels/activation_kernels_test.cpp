#include "runtime/kernels/activation_kernels.h"

#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/model/activation.h"
#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

using specs::Activation;

constexpr Activation fused[] = {Activation::gelu_tanh, Activation::silu, Activation::relu,
                                Activation::squared_relu};

at::Tensor composed(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return x.relu();
    case Activation::squared_relu:
      return x.relu().square();
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    default:
      return at::gelu(x);
  }
}

at::Tensor composed(const at::Tensor& x, Activation activation, bool gated) {
  if (!gated) return composed(x, activation);
  const std::int64_t width = x.size(1) / 2;
  return composed(x.narrow(1, 0, width), activation).mul(x.narrow(1, width, width));
}

/// Value and gradient of what LibTorch composes, in fp64.
std::pair<at::Tensor, at::Tensor> expected(const at::Tensor& x, const at::Tensor& output_gradient,
                                           Activation activation, bool gated) {
  const at::Tensor leaf = wide(x).detach().clone().requires_grad_();
  const at::Tensor y = composed(leaf, activation, gated);
  torch::autograd::backward({y}, {wide(output_gradient)});
  return {y.detach(), leaf.grad()};
}

std::string described(Activation activation, bool gated, at::ScalarType type) {
  return std::string(specs::name_of(activation)) + (gated ? " gated " : " ") + c10::toString(type);
}

TEST(ActivationKernels, AreLibTorchsOperatorsInEveryPrecision) {
  for (const auto& [type, bar] : precisions())
    for (const Activation activation : fused)
      for (const bool gated : {false, true})
        for (const std::int64_t rows : {1, 7, 37})
          for (const std::int64_t width : {1, 13, 64, 1030}) {
            const at::Tensor x = random_matrix({rows, width * (gated ? 2 : 1)}, type).mul_(2);
            const at::Tensor g = random_matrix({rows, width}, type);
            const auto [y, gradient] = expected(x, g, activation, gated);
            EXPECT_LE(distance(activate(x, activation, gated), y), bar)
                << described(activation, gated, type) << " " << rows << " x " << width;
            EXPECT_LE(distance(activate_backward(g, x, activation, gated), gradient), bar)
                << described(activation, gated, type) << " " << rows << " x " << width;
          }
}

TEST(ActivationKernels, KeepTheirTailsFarFromZero) {
  for (const Activation activation : fused) {
    const at::Tensor x = at::empty({1, 8}, at::kFloat);
    const float far[] = {-1e4F, -200.F, -90.F, -20.F, 20.F, 90.F, 200.F, 1e4F};
    for (int i = 0; i < 8; ++i) x.data_ptr<float>()[i] = far[i];
    const at::Tensor g = at::ones({1, 8}, at::kFloat);
    const auto [y, gradient] = expected(x, g, activation, false);
    EXPECT_LE(distance(activate(x, activation, false), y), 1e-6) << described(activation, false, at::kFloat);
    EXPECT_LE(distance(activate_backward(g, x, activation, false), gradient), 1e-6)
        << described(activation, false, at::kFloat);
  }
}

TEST(ActivationKernels, CarryOnWhatIsNoNumber) {
  for (const Activation activation : {Activation::gelu_tanh, Activation::silu}) {
    const at::Tensor x = at::full({2, 3}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
    EXPECT_TRUE(activate(x, activation, false).isnan().all().item<bool>());
    EXPECT_TRUE(activate_backward(at::ones({2, 3}), x, activation, false).isnan().all().item<bool>());
  }
}

TEST(ActivationKernels, GiveNothingForNoRows) {
  for (const bool gated : {false, true}) {
    const at::Tensor x = at::empty({0, gated ? 26 : 13}, at::kFloat), g = at::empty({0, 13}, at::kFloat);
    EXPECT_EQ(activate(x, Activation::silu, gated).sizes(), g.sizes());
    EXPECT_EQ(activate_backward(g, x, Activation::silu, gated).sizes(), x.sizes());
  }
}

TEST(ActivationKernels, ReadInputsOfAnyStrides) {
  for (const bool gated : {false, true}) {
    const at::Tensor x = random_matrix({9, gated ? 26 : 13}, at::kFloat),
                     g = random_matrix({9, 13}, at::kFloat);
    EXPECT_TRUE(activate(strided(x), Activation::silu, gated).equal(activate(x, Activation::silu, gated)));
    EXPECT_TRUE(activate_backward(strided(g), strided(x), Activation::silu, gated)
                    .equal(activate_backward(g, x, Activation::silu, gated)));
  }
}

TEST(Activation, OfTheModelIsTheCompositionWithItsGradient) {
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::silu})
    for (const bool gated : {false, true}) {
      const at::Tensor x = random_matrix({5, 22}, at::kDouble);
      const at::Tensor g = random_matrix({5, gated ? 11 : 22}, at::kDouble);
      const auto [y, gradient] = expected(x, g, activation, gated);
      const at::Tensor leaf = x.clone().requires_grad_();
      const at::Tensor found = runtime::activate(leaf, activation, gated);
      torch::autograd::backward({found}, {strided(g)});
      EXPECT_LE(distance(found.detach(), y), 1e-13) << described(activation, gated, at::kDouble);
      EXPECT_LE(distance(leaf.grad(), gradient), 1e-13) << described(activation, gated, at::kDouble);
    }
}

}  // namespace
}  // namespace runtime::kernels
