// bf16 and fp16 against their own single process: rounding differs with the order of sums, the model must
// not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "runtime/capabilities.h"
#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

/// Σ (a − b)² / Σ b² over all tensors, the root of it.
double relative_distance(const Tensors& result, const Tensors& reference) {
  double difference = 0;
  double size = 0;
  for (const auto& [name, expected] : reference) {
    const std::vector<double>& found = result.at(name);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += (found[i] - expected[i]) * (found[i] - expected[i]);
      size += expected[i] * expected[i];
    }
  }
  return std::sqrt(difference / size);
}

/// Every feature alone, and gradients kept in bf16 under each ZeRO stage.
std::vector<TrainingCase> placements(specs::Precision precision, std::int64_t steps) {
  std::vector<TrainingCase> cases = single_placements(capabilities());
  const std::vector<TrainingCase> generated = generator_only_placements(capabilities());
  cases.insert(cases.end(), generated.begin(), generated.end());
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    TrainingCase training;
    training.optimizer = specs::OptimizerKind::adamw;
    training.gradient_precision = specs::Precision::bf16;
    training.data = 2;
    training.zero.stage = stage;
    training.micro_batches = 2;
    if (precision == specs::Precision::bf16) cases.push_back(training);
  }
  for (TrainingCase& training : cases) {
    training.precision = precision;
    training.steps = steps;
    training.learnable = steps > 10;
  }
  return cases;
}

/// Gradients kept in bf16 that are summed over more than the replicas: over the tensor axis, the two ends of
/// the model, the nodes.
std::vector<TrainingCase> with_narrow_sums() {
  std::vector<TrainingCase> cases;
  const auto add = [&](std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                       specs::ZeroTreatment zero) -> TrainingCase& {
    TrainingCase& training = cases.emplace_back();
    training.optimizer = specs::OptimizerKind::adamw;
    training.precision = training.gradient_precision = specs::Precision::bf16;
    training.tensor = tensor;
    training.pipeline = pipeline;
    training.data = data;
    training.zero = zero;
    training.micro_batches = 2;
    training.steps = 10;
    return training;
  };
  add(2, 1, 1, {}).sequence_parallel = true;
  add(2, 1, 2, {.stage = 2}).sequence_parallel = true;
  add(4, 1, 1, {}).model = TinyModel::llama;  // key-value heads on two ranks each
  add(2, 1, 1, {}).output_mode = specs::OutputLayerMode::token_parallel;
  add(1, 2, 1, {});
  add(1, 2, 2, {.stage = 1});
  for (const std::int64_t stage : {1, 2, 3})
    add(1, 1, 4, {.stage = stage, .scope = specs::ShardScope::node, .shard_ranks = 2});
  return cases;
}

class HalfPrecision : public MatrixTest {
 protected:
  static void expect_close(const TrainingCase& training, WorkerPool& pool) {
    const TrainingOutcome& expected = reference(training, pool);
    const TrainingOutcome found = train(pool, training);
    double loss = 0;
    for (std::size_t step = 0; step < expected.losses.size(); ++step) {
      const double difference = std::abs(found.losses[step] - expected.losses[step]);
      if (is_larger(difference, loss)) loss = difference;
    }
    const double gradient = relative_distance(found.gradients, expected.gradients);
    std::printf("%-72s loss %.1e  gradient %.1e\n", training.name().c_str(), loss, gradient);
    std::fflush(stdout);
    EXPECT_TRUE(found.defects.empty()) << training.name() << ": " << found.defects.front();
    EXPECT_LE(loss, 0.02) << training.name();
    if (training.learnable) {
      EXPECT_LT(expected.losses.back(), expected.losses.front() - 0.5) << "nothing was learned";
    }
    EXPECT_LE(gradient, 0.02) << training.name();
    for (const std::string& defect : found.count_defects) ADD_FAILURE() << training.name() << ": " << defect;
  }

  static void expect_all_close(const std::vector<TrainingCase>& cases) {
    for_each_case(cases, [&](std::size_t index, WorkerPool& pool) { expect_close(cases[index], pool); });
  }
};
class NightlyHalfPrecision : public HalfPrecision {};

TEST_F(HalfPrecision, EveryFeatureAloneStaysCloseToOneProcessInBf16) {
  expect_all_close(placements(specs::Precision::bf16, 10));
}

/// Also by the bytes of each type that they count.
TEST_F(HalfPrecision, GradientsInBf16AreSummedAsSuchOverEveryAxis) { expect_all_close(with_narrow_sums()); }

TEST_F(HalfPrecision, EveryFeatureAloneStaysCloseToOneProcessInFp16) {
  expect_all_close(placements(specs::Precision::fp16, 10));
}

TEST_F(NightlyHalfPrecision, EveryFeatureAloneStaysCloseToOneProcessInBf16Through100Steps) {
  expect_all_close(placements(specs::Precision::bf16, 100));
}

TEST_F(NightlyHalfPrecision, EveryFeatureAloneStaysCloseToOneProcessInFp16Through100Steps) {
  expect_all_close(placements(specs::Precision::fp16, 100));
}

}  // namespace
}  // namespace runtime::numerics
