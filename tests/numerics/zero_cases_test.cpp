// Mistakes that others have made with sharded training: tied tables summed after the shards were cut, norms
// that count one rank or a copy twice, gradients of all but one micro-batch lost.
#include <cmath>
#include <vector>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class ZeroCases : public MatrixTest {
 protected:
  static TrainingCase placement(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                                std::int64_t zero_stage) {
    TrainingCase training;
    training.tensor = tensor;
    training.pipeline = pipeline;
    training.data = data;
    training.zero.stage = zero_stage;
    training.micro_batches = 2;
    return training;
  }
};

/// NVIDIA/Megatron-LM#844: with dp 2, pp 2 and ZeRO 1 the copies lie in different shards, and a sum over the
/// stages after the scatter adds unrelated pieces.
TEST_F(ZeroCases, TiedTablesOfFirstAndLastStageStayEqualThrough100Steps) {
  for (const std::int64_t zero_stage : {0, 1}) {
    TrainingCase training = placement(1, 2, 2, zero_stage);
    training.optimizer = specs::OptimizerKind::adamw;
    training.precision = specs::Precision::fp64;
    training.steps = 100;
    const TrainingOutcome outcome = train(*pool_, training);  // compares the copies bit for bit
    const Differences found = differences(training, outcome);
    EXPECT_TRUE(found.defect.empty()) << found.defect;
    EXPECT_LE(found.loss, 1e-9) << describe(training, found);
  }
}

/// pytorch/torchtitan#596, NVIDIA/Megatron-LM#7228, ROCm/TransformerEngine#715: the norm is that of one
/// process, before clipping and without the loss scale, whatever counts twice.
TEST_F(ZeroCases, TheReportedNormIsThatOfOneProcess) {
  const auto expect_norms = [](const TrainingCase& training) {
    const std::vector<double>& expected = reference(training).gradient_norms;
    const TrainingOutcome outcome = train(*pool_, training);
    const double bar = training.precision == specs::Precision::fp32 ? 1e-5 : 2e-2;
    for (std::size_t step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(outcome.gradient_norms[step], expected[step], bar * expected[step]) << training.name();
  };
  for (const TrainingCase& training :
       {placement(2, 1, 1, 0), placement(1, 2, 1, 0), placement(1, 1, 2, 1), placement(1, 1, 2, 2),
        placement(1, 1, 2, 3), placement(2, 1, 2, 2), placement(2, 1, 2, 3), placement(1, 2, 2, 1)})
    expect_norms(training);
  TrainingCase scaled = placement(1, 1, 2, 3);
  scaled.precision = specs::Precision::fp16;
  expect_norms(scaled);
}

/// deepspeedai/DeepSpeed#2252, allenai/open-instruct#1498, InfiniTensor/InfiniTrain#213: gradients of 4
/// micro-batches are those of the whole batch at once.
TEST_F(ZeroCases, GradientsOfFourMicroBatchesAreThoseOfOneBatch) {
  for (const std::int64_t zero_stage : {0, 1, 2, 3})
    for (const bool overlap : {true, false}) {
      TrainingCase training = placement(1, 1, 3, zero_stage);
      training.micro_batches = 4;
      training.overlap_reduction = overlap;
      const Differences found = differences(training, train(*pool_, training));
      EXPECT_LE(found.gradient.size, 1e-6) << describe(training, found);
      EXPECT_TRUE(found.defect.empty()) << found.defect;
    }
}

/// huggingface/transformers#24725, lightseekorg/TorchSpec#126: one sequence a micro-batch, of unequal numbers
/// of targets; one has none. Each target weighs the same, and every rank runs them all.
TEST_F(ZeroCases, AMicroBatchWithoutTargetsCountsForNothing) {
  for (TrainingCase training : {placement(1, 1, 1, 0), placement(2, 1, 1, 0), placement(1, 2, 3, 0),
                                placement(1, 2, 2, 1), placement(2, 1, 2, 2), placement(1, 1, 3, 3)}) {
    training.precision = specs::Precision::fp64;
    training.micro_batches = TrainingCase::global_batch / training.data;
    ASSERT_EQ(training.micro_batch(), 1);
    const Differences found = differences(training, train(*pool_, training));
    EXPECT_LE(found.loss, 1e-11) << describe(training, found);
    EXPECT_LE(found.gradient.size, 1e-10) << describe(training, found);
    EXPECT_TRUE(found.defect.empty()) << found.defect;
  }
}

}  // namespace
}  // namespace runtime::numerics
