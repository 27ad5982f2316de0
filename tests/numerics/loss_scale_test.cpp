// fp16: an overflow on one rank is an overflow of the step, on every rank, under any placement. The losses of
// the steps around it tell what was skipped.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

class LossScale : public MatrixTest {
 protected:
  static TrainingCase in_fp16(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                              std::int64_t zero_stage, std::int64_t offload_eighths) {
    TrainingCase training;
    training.precision = specs::Precision::fp16;
    training.optimizer = specs::OptimizerKind::adamw;
    training.micro_batches = 4 / data;
    training.tensor = tensor;
    training.pipeline = pipeline;
    training.data = data;
    training.zero.stage = zero_stage;
    if (offload_eighths > 0) training.offload.optimizer = {specs::OffloadDevice::cpu, offload_eighths};
    return training;
  }
  static std::vector<TrainingCase> placements() {
    return {in_fp16(1, 1, 1, 0, 0), in_fp16(2, 1, 1, 0, 0), in_fp16(1, 2, 1, 0, 0), in_fp16(1, 1, 2, 0, 0),
            in_fp16(1, 1, 2, 1, 0), in_fp16(1, 1, 2, 2, 0), in_fp16(1, 1, 2, 3, 0), in_fp16(1, 2, 2, 1, 5),
            in_fp16(1, 1, 2, 1, 8), in_fp16(1, 1, 2, 3, 8), in_fp16(2, 1, 4, 3, 0), in_fp16(2, 2, 2, 0, 0)};
  }
  /// The figures of a step that is skipped are no numbers, on which no two are equal.
  static bool same_scales_and_rates(const TrainingOutcome& a, const TrainingOutcome& b) {
    return a.loss_scales == b.loss_scales && a.learning_rates == b.learning_rates;
  }
};

TEST_F(LossScale, AnOverflowOnAnyOneRankIsSkippedByAll) {
  // Steps 1, 3 and 4 overflow: the first is forgiven, the others halve.
  constexpr std::uint64_t spoiled = 0b11010;
  for (TrainingCase training : placements()) {
    training.steps = 7;
    training.spoiled_steps = spoiled;
    training.spoiled_rank = training.ranks() - 1;
    const TrainingOutcome found = train(*pool_, training);
    const TrainingOutcome& expected = reference(training);
    EXPECT_THAT(found.loss_scales, testing::ElementsAre(65536, 65536, 65536, 65536, 32768, 16384, 16384))
        << training.name();
    EXPECT_TRUE(same_scales_and_rates(found, expected)) << training.name();
    for (std::size_t step = 0; step < found.losses.size(); ++step)
      EXPECT_NEAR(found.losses[step], expected.losses[step], 0.02) << training.name() << " step " << step;
  }
}

TEST_F(LossScale, SkippedStepsLeaveWeightsAndScheduleAsTheyWere) {
  for (TrainingCase training : placements()) {
    training.steps = 1;
    training.spoiled_steps = ~std::uint64_t{0};
    const Tensors initial = train(*pool_, training).weights;
    training.steps = 5;
    training.spoiled_rank = training.ranks() - 1;
    const TrainingOutcome after = train(*pool_, training);
    EXPECT_TRUE(after.weights == initial) << training.name();
    EXPECT_THAT(after.learning_rates, testing::Each(after.learning_rates.front())) << training.name();
    EXPECT_THAT(after.loss_scales, testing::ElementsAre(65536, 65536, 32768, 16384, 8192)) << training.name();
  }
}

TEST_F(LossScale, ARankThatDecidesAloneIsNoticed) {
  TrainingCase training = in_fp16(1, 1, 2, 0, 0);
  training.spoiled_steps = 0b10;
  training.spoiled_rank = 1;
  EXPECT_THAT(train(*pool_, training).defects, testing::IsEmpty());
  training.faults.decides_alone = true;
  EXPECT_THAT(train(*pool_, training).defects, testing::Not(testing::IsEmpty()));
}

TEST_F(LossScale, AScaleThatForgivesNothingIsNoticed) {
  TrainingCase training = in_fp16(1, 1, 1, 0, 0);
  training.spoiled_steps = 0b10;
  const TrainingOutcome forgiving = train(*pool_, training);
  training.faults.ignores_hysteresis = true;
  EXPECT_FALSE(same_scales_and_rates(train(*pool_, training), forgiving));
}

/// With a warm-up of 100 updates the rate is highest in the 100th, which is micro-step 400 of each rank where
/// four micro-batches make a step, whatever the number of replicas.
TEST_F(LossScale, TheLearningRateFollowsUpdatesNotMicroBatches) {
  for (const std::int64_t data : {1, 3}) {
    TrainingCase training;
    training.data = data;
    training.micro_batches = 4;
    training.warmup_steps = 100;
    training.steps = 102;
    const std::vector<double> rates = train(*pool_, training).learning_rates;
    EXPECT_EQ(std::max_element(rates.begin(), rates.end()) - rates.begin() + 1, 100);
    EXPECT_DOUBLE_EQ(rates[99], training_of(training).optimizer.learning_rate);
    EXPECT_DOUBLE_EQ(rates[49], rates[99] / 2);
  }
}

}  // namespace
}  // namespace runtime::numerics
