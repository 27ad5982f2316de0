#include "runtime/optimizer/update_kernels.h"

#include <cmath>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "runtime/model/initialization.h"
#include "runtime/optimizer/gradient_norm.h"
#include "runtime/optimizer/learning_rate.h"

namespace runtime {
namespace {

at::Tensor random(std::int64_t count, std::uint64_t seed, at::ScalarType type = at::kFloat) {
  ParameterSpec spec;
  spec.name = "noise";
  spec.global_shape = spec.local_shape = {count};
  spec.box = {{0}, {count}};
  spec.initial_deviation = 1;
  at::Tensor values = at::empty({count}, type);
  fill_initial(spec, seed, 0, values);
  return values;
}

TEST(UpdateKernels, AdamwFollowsItsFormula) {
  const at::Tensor weight = random(7, 1, at::kDouble), gradient = random(7, 2, at::kDouble);
  const at::Tensor m = at::zeros({7}, at::kDouble), v = at::zeros({7}, at::kDouble);
  const at::Tensor start = weight.clone();
  UpdateFactors f;
  f.learning_rate = 0.01, f.weight_decay = 0.1, f.gradient_scale = 0.5;
  double w = start[3].item<double>(), first = 0, second = 0;
  for (f.step = 1; f.step <= 3; ++f.step) {
    update_adamw(weight, m, v, gradient, f);
    const double g = 0.5 * gradient[3].item<double>();
    first = f.beta1 * first + (1 - f.beta1) * g;
    second = f.beta2 * second + (1 - f.beta2) * g * g;
    const double t = static_cast<double>(f.step);
    w = w * (1 - f.learning_rate * f.weight_decay) -
        f.learning_rate * (first / (1 - std::pow(f.beta1, t))) /
            (std::sqrt(second / (1 - std::pow(f.beta2, t))) + f.epsilon);
  }
  EXPECT_NEAR(weight[3].item<double>(), w, 1e-14);
}

TEST(UpdateKernels, AnUpdateOfPartsEqualsTheUpdateOfTheWholeBitForBit) {
  for (const std::int64_t count : {1, 7, 64, 1000, 4097}) {
    const at::Tensor gradient = random(count, 3);
    for (const std::int64_t cut : {count / 3, count / 2, count - 1}) {
      at::Tensor whole = random(count, 4), parts = whole.clone();
      at::Tensor m = random(count, 5), v = random(count, 6).square_();
      at::Tensor m_parts = m.clone(), v_parts = v.clone();
      UpdateFactors f;
      f.learning_rate = 1e-3, f.weight_decay = 0.1, f.step = 9;
      update_adamw(whole, m, v, gradient, f);
      for (const auto& [begin, size] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, count - cut}})
        update_adamw(parts.narrow(0, begin, size), m_parts.narrow(0, begin, size),
                     v_parts.narrow(0, begin, size), gradient.narrow(0, begin, size), f);
      EXPECT_TRUE(at::equal(whole, parts)) << count << " cut at " << cut;
      EXPECT_TRUE(at::equal(v, v_parts));
    }
  }
}

/// Weight, moments and gradient of a run of updates.
struct UpdateState {
  at::Tensor weight, first, second, gradient;

  UpdateState(std::int64_t count, at::ScalarType type, at::ScalarType gradient_type)
      : weight(random(count, 4, type)),
        first(at::zeros({count}, type)),
        second(at::zeros({count}, type)),
        gradient(random(count, 3).to(gradient_type)) {}

  void update(specs::OptimizerKind kind, std::int64_t steps, InstructionSet instructions,
              std::int64_t begin = 0) {
    UpdateFactors f;
    f.learning_rate = 1e-3, f.weight_decay = 0.1, f.gradient_scale = 0.37;
    const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, begin, whole.numel() - begin); };
    for (f.step = 1; f.step <= steps; ++f.step)
      if (kind == specs::OptimizerKind::adamw)
        update_adamw(part(weight), part(first), part(second), part(gradient), f, instructions);
      else
        update_sgd(part(weight), part(first), part(gradient), f, instructions);
  }
};

TEST(UpdateKernels, EveryInstructionSetGivesTheSameBits) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const auto gradient : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
      for (const auto kind : {specs::OptimizerKind::adamw, specs::OptimizerKind::sgd})
        for (const std::int64_t count : {1, 2, 7, 15, 16, 17, 31, 33, 64, 100, 1023, 4097})
          for (const std::int64_t begin : {0, 1, 3}) {
            if (begin >= count) continue;
            UpdateState expected(count, type, gradient);
            expected.update(kind, 5, InstructionSet::portable, begin);
            for (const InstructionSet instructions : instruction_sets()) {
              UpdateState found(count, type, gradient);
              found.update(kind, 5, instructions, begin);
              EXPECT_TRUE(at::equal(found.weight, expected.weight) &&
                          at::equal(found.first, expected.first) && at::equal(found.second, expected.second))
                  << specs::name_of(instructions) << " " << count << " from " << begin;
            }
          }
}

/// Each of 100 updates rounds product and sum once.
TEST(UpdateKernels, A32BitRunStaysAsCloseToThe64BitOneAsItsRoundingAllows) {
  constexpr double roundings = 200 * 0x1p-24;
  for (const auto kind : {specs::OptimizerKind::adamw, specs::OptimizerKind::sgd})
    for (const InstructionSet instructions : instruction_sets()) {
      UpdateState narrow(4097, at::kFloat, at::kFloat), wide(4097, at::kDouble, at::kFloat);
      narrow.update(kind, 100, instructions);
      wide.update(kind, 100, instructions);
      const at::Tensor distance = narrow.weight.to(at::kDouble).sub(wide.weight).abs();
      EXPECT_LE(distance.max().item<double>(), roundings * wide.weight.abs().max().item<double>())
          << specs::name_of(instructions);
    }
}

TEST(UpdateKernels, AdamwIsThatOfLibTorch) {
  UpdateState own(1000, at::kFloat, at::kFloat);
  own.gradient.mul_(0.37);
  at::Tensor weight = own.weight.clone(), first = at::zeros({1000}), second = at::zeros({1000});
  UpdateFactors f;
  f.learning_rate = 1e-3, f.weight_decay = 0.1;
  for (f.step = 1; f.step <= 100; ++f.step) {
    update_adamw(own.weight, own.first, own.second, own.gradient, f);
    at::_fused_adamw_({weight}, {own.gradient}, {first}, {second}, {},
                      {at::full({}, static_cast<double>(f.step))}, f.learning_rate, f.beta1, f.beta2,
                      f.weight_decay, f.epsilon, false, false);
  }
  EXPECT_LE(own.weight.sub(weight).abs().max().item<double>(), 1e-6);
}

TEST(UpdateKernels, SgdAddsDecayBeforeMomentum) {
  const at::Tensor weight = at::full({1}, 2.0), momentum = at::full({1}, 1.0), gradient = at::full({1}, 0.5);
  UpdateFactors f;
  f.learning_rate = 0.1, f.weight_decay = 0.01, f.momentum = 0.9;
  update_sgd(weight, momentum, gradient, f);
  EXPECT_NEAR(momentum.item<double>(), 0.9 + 0.5 + 0.02, 1e-6);
  EXPECT_NEAR(weight.item<double>(), 2 - 0.142, 1e-6);
}

TEST(GradientNorm, ClipsOnlyAboveTheLimit) {
  EXPECT_EQ(clip_coefficient(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_coefficient(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(clip_coefficient(4.0, 0), 1.0);
}

TEST(LearningRate, WarmsUpThenDecaysToTheMinimum) {
  specs::TrainingSpec training;
  training.optimizer.learning_rate = 1;
  training.schedule.warmup_steps = 4;
  training.steps = 14;
  EXPECT_DOUBLE_EQ(learning_rate(training, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(training, 3), 1);
  EXPECT_DOUBLE_EQ(learning_rate(training, 4), 1);
  EXPECT_NEAR(learning_rate(training, 9), 0.55, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(training, 14), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(training, 1000), 0.1);
}

}  // namespace
}  // namespace runtime
