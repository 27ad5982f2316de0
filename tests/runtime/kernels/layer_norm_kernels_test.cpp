#include "runtime/kernels/layer_norm_kernels.h"

#include <string>

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/runtime/kernels/kernel_checks.h"

namespace runtime::kernels {
namespace {

constexpr double epsilon = 1e-5;

struct Inputs {
  Inputs(std::int64_t rows, std::int64_t width, at::ScalarType type)
      : x(random_matrix({rows, width}, type)),
        g(random_matrix({rows, width}, type)),
        beside(random_matrix({rows, width}, type)),
        weight(random_matrix({width}, type)),
        bias(random_matrix({width}, type)) {
    const auto [y, means, scales] = at::native_layer_norm(x, {width}, weight, bias, epsilon);
    mean = means;
    scale = scales;
  }
  at::Tensor x, g, beside, weight, bias, mean, scale;
};

struct Composed {
  at::Tensor x, weight, bias;
};

/// The gradients that LibTorch finds in fp64.
Composed composed(const Inputs& inputs) {
  const at::Tensor x = wide(inputs.x).detach().clone().requires_grad_();
  const at::Tensor weight = wide(inputs.weight).detach().clone().requires_grad_();
  const at::Tensor bias = wide(inputs.bias).detach().clone().requires_grad_();
  const at::Tensor y = at::layer_norm(x, {x.size(1)}, weight, bias, epsilon);
  torch::autograd::backward({y}, {wide(inputs.g)});
  return {x.grad(), weight.grad(), bias.grad()};
}

TEST(LayerNormKernels, AreLibTorchsGradientsInEveryPrecision) {
  for (const auto& [type, bar] : precisions())
    for (const std::int64_t rows : {1, 7, 50})
      for (const std::int64_t width : {5, 13, 64, 515}) {
        const Inputs inputs(rows, width, type);
        const Composed expected = composed(inputs);
        const std::string where =
            std::string(c10::toString(type)) + " " + std::to_string(rows) + " x " + std::to_string(width);
        const LayerNormGradients found =
            layer_norm_backward(inputs.g, inputs.x, inputs.mean, inputs.scale, inputs.weight);
        EXPECT_LE(distance(found.x, expected.x), 3 * bar) << where;
        EXPECT_LE(distance(found.weight, expected.weight), 3 * bar) << where;
        EXPECT_LE(distance(found.bias, expected.bias), bar) << where;
        EXPECT_EQ(found.weight.scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
        const LayerNormGradients both =
            layer_norm_backward(inputs.g, inputs.x, inputs.mean, inputs.scale, inputs.weight, inputs.beside);
        EXPECT_LE(distance(both.x, expected.x.add(wide(inputs.beside))), 3 * bar) << where;
        EXPECT_TRUE(both.weight.equal(found.weight)) << where;
      }
}

TEST(LayerNormKernels, GiveNothingForNoRows) {
  const at::Tensor none = at::empty({0, 13}, at::kFloat), moments = at::empty({0, 1}, at::kFloat);
  const LayerNormGradients gradients =
      layer_norm_backward(none, none, moments, moments, random_matrix({13}, at::kFloat));
  EXPECT_EQ(gradients.x.sizes(), none.sizes());
  EXPECT_EQ(gradients.weight.abs().sum().item<double>(), 0);
  EXPECT_EQ(gradients.bias.abs().sum().item<double>(), 0);
}

TEST(LayerNormKernels, ReadInputsOfAnyStrides) {
  const Inputs inputs(9, 13, at::kFloat);
  const LayerNormGradients expected =
      layer_norm_backward(inputs.g, inputs.x, inputs.mean, inputs.scale, inputs.weight, inputs.beside);
  const LayerNormGradients found = layer_norm_backward(strided(inputs.g), strided(inputs.x), inputs.mean,
                                                       inputs.scale, inputs.weight, strided(inputs.beside));
  EXPECT_TRUE(found.x.equal(expected.x));
  EXPECT_TRUE(found.weight.equal(expected.weight));
  EXPECT_TRUE(found.bias.equal(expected.bias));
}

}  // namespace
}  // namespace runtime::kernels
