// The single-process model against itself: each gradient equals the slope of the loss, measured in fp64.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
#include "runtime/model/counter_random.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace runtime {
namespace {

constexpr std::int64_t length = 8;
constexpr std::int64_t sequences = 2;

specs::ModelSpec gpt() {
  specs::ModelSpec model;
  model.layers = 2;
  model.hidden = 16;
  model.vocabulary = 29;
  model.vocabulary_multiple = 8;
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = 4;
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.feed_forward = {32, false, specs::Activation::gelu, true};
  model.positions = length;
  return model;
}

specs::ModelSpec llama() {
  specs::ModelSpec model = gpt();
  model.attention.kv_heads = 2;
  model.attention.qkv_bias = model.attention.output_bias = false;
  model.feed_forward = {24, true, specs::Activation::silu, false};
  model.position_encoding = specs::PositionEncoding::rotary;
  model.rotary.scaling = "llama3";
  model.rotary.scaling_factor = 8;
  model.rotary.original_positions = 64;
  model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = false;
  model.tied_embeddings = false;
  return model;
}

TrainerSpec single_process(const specs::ModelSpec& model) {
  TrainerSpec spec;
  spec.model = model;
  spec.training.global_batch = sequences;
  spec.training.sequence_length = length;
  spec.training.precision = specs::Precision::fp64;
  spec.training.steps = 1;
  specs::RegularPlacement regular;
  regular.micro_batch = sequences;
  spec.placement = specs::regular_placement(regular, model.layers);
  spec.schedule =
      specs::lower(specs::generate_schedule(specs::ScheduleKind::one_forward_one_backward, 1, 1, 1));
  return spec;
}

std::vector<MicroBatch> batch(std::int64_t vocabulary) {
  MicroBatch batch;
  batch.tokens = at::empty({sequences, length}, at::kLong);
  batch.targets = at::empty({sequences, length}, at::kLong);
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    const RandomBlock bits = philox(3, 0, static_cast<std::uint64_t>(i));
    batch.tokens.data_ptr<std::int64_t>()[i] = bits[0] % static_cast<std::uint32_t>(vocabulary);
    batch.targets.data_ptr<std::int64_t>()[i] =
        i % 5 == 0 ? std::int64_t{-100} : std::int64_t{bits[1] % static_cast<std::uint32_t>(vocabulary)};
  }
  return {batch};
}

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
