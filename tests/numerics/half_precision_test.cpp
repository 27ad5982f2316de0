// bf16 and fp16 against their own single process: rounding differs with the order of sums, the model must
// not.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class HalfPrecision : public MatrixTest {
 protected:
  /// Σ (a − b)² / Σ b² over all tensors, the root of it.
  static double relative_distance(const Tensors& result, const Tensors& reference) {
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

  static void expect_close(TrainingCase training, specs::Precision precision) {
    training.precision = precision;
    training.optimizer = specs::OptimizerKind::adamw;
    training.steps = 10;
    const TrainingOutcome& expected = reference(training);
    const TrainingOutcome found = train(*pool_, training);
    double loss = 0;
    for (std::size_t step = 0; step < expected.losses.size(); ++step)
      loss = std::max(loss, std::abs(found.losses[step] - expected.losses[step]));
    const double gradient = relative_distance(found.gradients, expected.gradients);
    std::printf("%-72s loss %.1e  gradient %.1e\n", training.name().c_str(), loss, gradient);
    EXPECT_TRUE(found.defects.empty()) << found.defects.front();
    EXPECT_LE(loss, 0.02);
    EXPECT_LE(gradient, 0.02);
  }
};

TEST_F(HalfPrecision, EachAxisAloneStaysCloseToOneProcess) {
  for (const TinyModel model : {TinyModel::gpt, TinyModel::llama}) {
    TrainingCase training;
    training.model = model;
    training.micro_batches = 4;
    TrainingCase tensor = training, sequence = training, pipeline = training, data = training,
                 sharded = training;
    tensor.tensor = 2;
    sequence.tensor = 2;
    sequence.sequence_parallel = true;
    pipeline.pipeline = 2;
    data.data = 2;
    sharded.data = 2;
    sharded.zero.stage = 1;
    for (const specs::Precision precision : {specs::Precision::bf16, specs::Precision::fp16})
      for (const TrainingCase& one : {training, tensor, sequence, pipeline, data, sharded})
        expect_close(one, precision);
  }
}

}  // namespace
}  // namespace runtime::numerics
