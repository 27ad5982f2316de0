#include <cmath>
#include <limits>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "runtime/mesh/mesh.h"
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
  EXPECT_FALSE(trainer.first_non_finite_gradient().empty());
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

TEST(SkippedStep, ANonFiniteWeightIsNamedByItsGradient) {
  const Mesh mesh = Mesh::single();
  Trainer trainer(single_process(gpt()), mesh);
  trainer.parameters().find("transformer.ln_f.weight")->value.fill_(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(trainer.step(batch(29)).updated);
  EXPECT_EQ(trainer.optimizer().updates(), 0);
  EXPECT_FALSE(trainer.first_non_finite_gradient().empty());
}

}  // namespace
}  // namespace runtime
