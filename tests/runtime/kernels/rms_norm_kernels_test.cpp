#include "runtime/kernels/rms_norm_kernels.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

constexpr double epsilon = 1e-5;

struct Composed {
  at::Tensor y, x_gradient, weight_gradient;
};

/// x · (mean x² + ε)^−½ · weight and its gradients by LibTorch's operators, in fp64.
Composed composed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& output_gradient) {
  const at::Tensor leaf = wide(x).detach().clone().requires_grad_();
  const at::Tensor factor = wide(weight).detach().clone().requires_grad_();
  const at::Tensor y = leaf.mul(leaf.square().mean(1, /*keepdim=*/true).add(epsilon).rsqrt()).mul(factor);
  torch::autograd::backward({y}, {wide(output_gradient)});
  return {y.detach(), leaf.grad(), factor.grad()};
}

TEST(RmsNormKernels, AreTheCompositionInEveryPrecision) {
  for (const auto& [type, bar] : precisions())
    for (const std::int64_t rows : {1, 7, 50})
      for (const std::int64_t width : {1, 13, 64, 515}) {
        const at::Tensor x = random_matrix({rows, width}, type), g = random_matrix({rows, width}, type);
        const at::Tensor weight = random_matrix({width}, type);
        const Composed expected = composed(x, weight, g);
        const RmsNormOutput found = rms_norm(x, weight, epsilon);
        const RmsNormGradients gradients = rms_norm_backward(g, x, found.scale, weight);
        EXPECT_LE(distance(found.y, expected.y), bar) << c10::toString(type) << rows << " x " << width;
        // A row of one element has a gradient that all but vanishes between two terms of order 1 / x.
        if (width > 1) {
          EXPECT_LE(distance(gradients.x, expected.x_gradient), 3 * bar)
              << c10::toString(type) << rows << " x " << width;
        }
        EXPECT_LE(distance(gradients.weight, expected.weight_gradient), 3 * bar)
            << c10::toString(type) << rows << " x " << width;
        EXPECT_EQ(gradients.weight.scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
        const at::Tensor beside = random_matrix({rows, width}, type);
        const RmsNormGradients both = rms_norm_backward(g, x, found.scale, weight, beside);
        if (width > 1) {
          EXPECT_LE(distance(both.x, expected.x_gradient.add(wide(beside))), 3 * bar)
              << c10::toString(type) << rows << " x " << width;
        }
        EXPECT_TRUE(both.weight.equal(gradients.weight));
      }
}

TEST(RmsNormKernels, GiveNothingForNoRows) {
  const at::Tensor none = at::empty({0, 13}, at::kFloat), weight = random_matrix({13}, at::kFloat);
  const RmsNormOutput output = rms_norm(none, weight, epsilon);
  EXPECT_EQ(output.y.sizes(), none.sizes());
  const RmsNormGradients gradients = rms_norm_backward(none, none, output.scale, weight);
  EXPECT_EQ(gradients.x.sizes(), none.sizes());
  EXPECT_EQ(gradients.weight.abs().sum().item<double>(), 0);
}

TEST(RmsNormKernels, ReadInputsOfAnyStrides) {
  const at::Tensor x = random_matrix({9, 13}, at::kFloat), g = random_matrix({9, 13}, at::kFloat);
  const at::Tensor weight = random_matrix({13}, at::kFloat);
  const RmsNormOutput output = rms_norm(x, weight, epsilon);
  EXPECT_TRUE(rms_norm(strided(x), weight, epsilon).y.equal(output.y));
  const RmsNormGradients expected = rms_norm_backward(g, x, output.scale, weight);
  const RmsNormGradients found = rms_norm_backward(strided(g), strided(x), output.scale, weight);
  EXPECT_TRUE(found.x.equal(expected.x));
  EXPECT_TRUE(found.weight.equal(expected.weight));
}

}  // namespace
}  // namespace runtime::kernels
