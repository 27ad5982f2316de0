// The single-process model against itself: each gradient equals the slope of the loss, measured in fp64.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
#include "runtime/train/trainer.h"
#include "tests/runtime/model/tiny_models.h"

namespace runtime {
namespace {

/// Slope of the loss along one element, by a fourth-order central difference.
double slope(Trainer& trainer, const std::vector<MicroBatch>& batches, double& element) {
  const double step = 1e-3;
  const double before = element;
  const auto loss_at = [&](double offset) {
    element = before + offset;
    const double loss = trainer.evaluate(batches);
    element = before;
    return loss;
  };
  return (8 * (loss_at(step) - loss_at(-step)) - (loss_at(2 * step) - loss_at(-2 * step))) / (12 * step);
}

void expect_gradients_are_slopes(const specs::ModelSpec& model) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(single_process(model), mesh);
  const std::vector<MicroBatch> batches = batch(model.vocabulary);
  const double loss = trainer.compute_gradients(batches).loss;
  EXPECT_NEAR(loss, trainer.evaluate(batches), 1e-12);
  EXPECT_NEAR(loss, std::log(static_cast<double>(model.vocabulary)), 0.1);
  for (const Parameter* parameter : trainer.parameters().parameters()) {
    const at::Tensor values = parameter->value.view({-1});
    const at::Tensor gradients = parameter->gradient.view({-1});
    for (std::int64_t sample = 0; sample < 3; ++sample) {
      const std::int64_t index = (sample * 7919 + 5) % parameter->valid_numel();
      const double expected = slope(trainer, batches, values.data_ptr<double>()[index]);
      EXPECT_NEAR(gradients.data_ptr<double>()[index], expected, 1e-9 + 1e-7 * std::abs(expected))
          << parameter->name() << "[" << index << "]";
    }
  }
}

TEST(GradientCheck, EveryGptGradientIsTheSlopeOfTheLoss) { expect_gradients_are_slopes(gpt()); }

TEST(GradientCheck, EveryLlamaGradientIsTheSlopeOfTheLoss) { expect_gradients_are_slopes(llama()); }

TEST(GradientCheck, PaddingRowsHaveNoGradient) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(single_process(gpt()), mesh);
  trainer.compute_gradients(batch(29));
  const Parameter& table = *trainer.parameters().find("transformer.wte.weight");
  ASSERT_EQ(table.value.size(0), 32);
  EXPECT_EQ(table.gradient.narrow(0, 29, 3).abs().sum().item<double>(), 0);
  EXPECT_EQ(table.value.narrow(0, 29, 3).abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace runtime
