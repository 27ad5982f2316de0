#include <cmath>
#include <limits>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
#include "runtime/train/non_finite.h"
#include "tests/runtime/model/tiny_models.h"

namespace runtime {
namespace {

TrainerSpec in_fp16(double initial_scale) {
  TrainerSpec spec = single_process(gpt());
  spec.training.precision = specs::Precision::fp16;
  spec.training.loss_scaling.initial_scale = initial_scale;
  spec.training.loss_scaling.hysteresis = 1;
  return spec;
}

TEST(SkippedStep, AnOverflowChangesNothingButTheScale) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(in_fp16(1e9), mesh);
  const at::Tensor before = trainer.parameters().buckets().front().values.clone();
  const StepResult skipped = trainer.step(batch(29));
  EXPECT_FALSE(skipped.updated);
  EXPECT_FALSE(first_non_finite(trainer, batch(29), skipped).empty());
  EXPECT_TRUE(at::equal(trainer.parameters().buckets().front().values, before));
  EXPECT_EQ(trainer.optimizer().updates(), 0);
  EXPECT_EQ(trainer.loss_scaler().scale(), 5e8);
  EXPECT_EQ(trainer.loss_scaler().state().skipped_steps, 1);
}

TEST(SkippedStep, TrainingGoesOnOnceTheScaleFits) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(in_fp16(1e9), mesh);
  int skipped = 0;
  StepResult result;
  while (!(result = trainer.step(batch(29))).updated && skipped < 40) ++skipped;
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 30);
  EXPECT_EQ(trainer.optimizer().updates(), 1);
  EXPECT_NEAR(result.loss, std::log(29.0), 0.1);
}

TEST(SkippedStep, TheFirstTensorThatIsNotFiniteIsNamedWithLayerAndRank) {
  const Mesh mesh = Mesh::single();
  const auto first_after = [&](auto spoil) {
    TrainerOptions options;
    options.on_gradients = [&](Trainer& trainer) { spoil(trainer, true); };
    Trainer trainer(single_process(gpt()), mesh, options);
    spoil(trainer, false);
    const StepResult result = trainer.step(batch(29));
    EXPECT_FALSE(result.updated);
    EXPECT_EQ(trainer.optimizer().updates(), 0);
    return first_non_finite(trainer, batch(29), result);
  };
  const auto infinite = [](const at::Tensor& tensor) {
    tensor.fill_(std::numeric_limits<double>::infinity());
  };
  EXPECT_EQ(first_after([&](Trainer& trainer, bool) {
              infinite(trainer.parameters().find("transformer.h.1.mlp.c_fc.weight")->value);
            }),
            "the output of the feed-forward network of layer 1 on rank 0");
  EXPECT_EQ(first_after([&](Trainer& trainer, bool) {
              infinite(trainer.parameters().find("transformer.ln_f.weight")->value);
            }),
            "the loss on rank 0");
  // Backward comes to the higher layer first.
  EXPECT_EQ(first_after([&](Trainer& trainer, bool gradients_are_whole) {
              if (!gradients_are_whole) return;
              for (const char* name : {"transformer.h.0.ln_1.weight", "transformer.h.1.attn.q_proj.weight"})
                infinite(trainer.parameters().find(name)->gradient);
            }),
            "the gradient of transformer.h.1.attn.q_proj.weight (layer 1) on rank 0");
}

}  // namespace
}  // namespace runtime
