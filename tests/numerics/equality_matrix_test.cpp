// The equality matrix: whatever the placement, training equals the single-process run up to reassociation.
#include <utility>
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

constexpr std::int64_t most_ranks = 4;

struct Arithmetic {
  specs::Precision precision;
  specs::OptimizerKind optimizer;
};
constexpr Arithmetic fp32_sgd{specs::Precision::fp32, specs::OptimizerKind::sgd};
constexpr Arithmetic fp64_adamw{specs::Precision::fp64, specs::OptimizerKind::adamw};

TrainingCase base_case(TinyModel model, Arithmetic arithmetic, std::int64_t tensor, std::int64_t pipeline,
                       std::int64_t data) {
  TrainingCase training;
  training.model = model == TinyModel::llama && tensor == 3 ? TinyModel::llama_thirds : model;
  training.precision = arithmetic.precision;
  training.optimizer = arithmetic.optimizer;
  training.tensor = tensor;
  training.pipeline = pipeline;
  training.data = data;
  training.micro_batch = data == 3 ? 2 : 3;
  return training;
}

/// Every (tensor, pipeline, data, ZeRO 0 and 1) whose ranks are at most four.
std::vector<TrainingCase> all_placements(TinyModel model, Arithmetic arithmetic) {
  std::vector<TrainingCase> cases;
  for (std::int64_t tensor = 1; tensor <= most_ranks; ++tensor)
    for (std::int64_t pipeline = 1; tensor * pipeline <= most_ranks; ++pipeline)
      for (std::int64_t data = 1; tensor * pipeline * data <= most_ranks; ++data)
        for (std::int64_t zero = 0; zero <= (data > 1 ? 1 : 0); ++zero) {
          TrainingCase training = base_case(model, arithmetic, tensor, pipeline, data);
          training.zero_stage = zero;
          cases.push_back(training);
        }
  return cases;
}

/// What the grid of degrees leaves out, each with a pipeline, tensor and data axis where it makes sense.
std::vector<TrainingCase> variations(TinyModel model, Arithmetic arithmetic) {
  std::vector<TrainingCase> cases;
  const auto add = [&](std::int64_t tensor, std::int64_t pipeline, std::int64_t data, auto change) {
    TrainingCase training = base_case(model, arithmetic, tensor, pipeline, data);
    change(training);
    cases.push_back(training);
  };
  add(1, 4, 1, [](TrainingCase& c) { c.schedule = specs::ScheduleKind::gpipe; });
  add(1, 2, 2, [](TrainingCase& c) { c.cut = Cut::sub_layer, c.zero_stage = 1; });
  add(2, 2, 1, [](TrainingCase& c) { c.cut = Cut::front_heavy; });
  add(1, 3, 1, [](TrainingCase& c) { c.cut = Cut::sub_layer, c.micro_batch = 12; });
  add(1, 2, 1, [](TrainingCase& c) { c.schedule = specs::ScheduleKind::interleaved, c.virtual_stages = 2; });
  add(2, 2, 1, [](TrainingCase& c) {
    c.schedule = specs::ScheduleKind::interleaved, c.virtual_stages = 2, c.sequence_parallel = true;
  });
  add(1, 4, 1, [](TrainingCase& c) { c.schedule = specs::ScheduleKind::zero_bubble_h1; });
  add(2, 2, 1,
      [](TrainingCase& c) { c.schedule = specs::ScheduleKind::zero_bubble_h1, c.sequence_parallel = true; });
  add(1, 2, 1,
      [](TrainingCase& c) { c.schedule = specs::ScheduleKind::zero_bubble_v, c.virtual_stages = 2; });
  add(2, 1, 1, [](TrainingCase& c) { c.sequence_parallel = true; });
  add(4, 1, 1, [](TrainingCase& c) { c.sequence_parallel = true; });
  add(2, 1, 2, [](TrainingCase& c) { c.sequence_parallel = true, c.zero_stage = 1; });
  add(2, 2, 1, [](TrainingCase& c) {
    c.sequence_parallel = true, c.cut = Cut::sub_layer, c.recomputation = specs::Recomputation::full;
  });
  add(1, 1, 2, [](TrainingCase& c) { c.overlap_reduction = false, c.zero_stage = 1; });
  add(1, 1, 2, [](TrainingCase& c) { c.zero_stage = 2; });
  add(1, 1, 2, [](TrainingCase& c) { c.overlap_reduction = false, c.zero_stage = 2; });
  add(1, 1, 3, [](TrainingCase& c) { c.zero_stage = 2; });
  add(2, 1, 2, [](TrainingCase& c) { c.zero_stage = 2; });
  add(2, 1, 2, [](TrainingCase& c) { c.sequence_parallel = true, c.zero_stage = 2; });
  add(1, 1, 4, [](TrainingCase& c) { c.zero_stage = 1, c.shard_ranks = 2; });
  add(1, 1, 4, [](TrainingCase& c) { c.zero_stage = 2, c.shard_ranks = 2; });
  add(1, 1, 1, [](TrainingCase& c) { c.dropout = 0.1, c.recomputation = specs::Recomputation::full; });
  add(2, 1, 2, [](TrainingCase& c) { c.dropout = 0.1, c.sequence_parallel = true; });
  add(2, 2, 1, [](TrainingCase& c) { c.dropout = 0.1, c.recomputation = specs::Recomputation::full; });
  add(2, 1, 2, [](TrainingCase& c) { c.attention_dropout = 0.1, c.sequence_parallel = true; });
  add(2, 2, 1, [](TrainingCase& c) {
    c.attention_dropout = 0.1, c.attention = specs::AttentionImplementation::unfused;
    c.recomputation = specs::Recomputation::selective;
  });
  add(1, 2, 2, [](TrainingCase& c) { c.attention = specs::AttentionImplementation::unfused; });
  add(1, 2, 2, [](TrainingCase& c) { c.offload_eighths = 3, c.zero_stage = 1; });
  add(2, 2, 1, [](TrainingCase& c) { c.offload_eighths = 8, c.sequence_parallel = true; });
  return cases;
}

class EqualityMatrix : public MatrixTest {};

TEST_F(EqualityMatrix, GptInFp64WithAdamwEqualsOneProcess) {
  for (const TrainingCase& training : all_placements(TinyModel::gpt, fp64_adamw)) expect_equal(training);
}

TEST_F(EqualityMatrix, LlamaInFp64WithAdamwEqualsOneProcess) {
  for (const TrainingCase& training : all_placements(TinyModel::llama, fp64_adamw)) expect_equal(training);
}

TEST_F(EqualityMatrix, GptInFp32WithMomentumEqualsOneProcess) {
  for (const TrainingCase& training : all_placements(TinyModel::gpt, fp32_sgd)) expect_equal(training);
}

TEST_F(EqualityMatrix, LlamaInFp32WithMomentumEqualsOneProcess) {
  for (const TrainingCase& training : all_placements(TinyModel::llama, fp32_sgd)) expect_equal(training);
}

TEST_F(EqualityMatrix, GptVariationsEqualOneProcess) {
  for (const Arithmetic arithmetic : {fp64_adamw, fp32_sgd})
    for (const TrainingCase& training : variations(TinyModel::gpt, arithmetic)) expect_equal(training);
}

TEST_F(EqualityMatrix, LlamaVariationsEqualOneProcess) {
  for (const Arithmetic arithmetic : {fp64_adamw, fp32_sgd})
    for (const TrainingCase& training : variations(TinyModel::llama, arithmetic)) expect_equal(training);
}

}  // namespace
}  // namespace runtime::numerics
