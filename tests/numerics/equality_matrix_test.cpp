// The equality matrix: whatever the placement, training equals the single-process run up to reassociation.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/capabilities.h"
#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

/// Every pair of values stands in three placements, so that a pair that one placement hides shows in another.
constexpr int times_each_pair = 3;

/// AdamW turns the rounding noise of fp32 gradients near zero into updates; momentum does not.
TrainingCase in_fp32(TrainingCase training) {
  training.precision = specs::Precision::fp32;
  training.optimizer = specs::OptimizerKind::sgd;
  return training;
}

class EqualityMatrix : public MatrixTest {};
class NightlyEqualityMatrix : public MatrixTest {};

TEST_F(EqualityMatrix, EveryFeatureAloneEqualsOneProcessInFp64) {
  expect_all_equal(single_placements(capabilities()));
}

/// With the features alone more than two hundred placements; the nightly run takes all pairs.
TEST_F(EqualityMatrix, PairsOfFeaturesEqualOneProcessInFp64) {
  constexpr std::size_t pairs_of_a_default_run = 130;
  std::vector<TrainingCase> pairs = paired_placements(capabilities(), times_each_pair);
  if (pairs.size() > pairs_of_a_default_run) pairs.resize(pairs_of_a_default_run);
  expect_all_equal(pairs);
}

TEST_F(EqualityMatrix, EveryFeatureAloneEqualsOneProcessInFp32) {
  std::vector<TrainingCase> cases;
  for (const TrainingCase& training : single_placements(capabilities())) cases.push_back(in_fp32(training));
  expect_all_equal(cases);
}

/// Schedules that exist as generators alone run through the same executor.
TEST_F(EqualityMatrix, SchedulesThatAreGeneratorsAloneEqualOneProcessToo) {
  std::vector<TrainingCase> cases;
  for (const specs::ScheduleKind kind :
       {specs::ScheduleKind::zero_bubble_h2, specs::ScheduleKind::zero_bubble_v})
    for (const std::int64_t pipeline : {2, 4})
      for (const std::int64_t micro_batches : {1, 3, 8}) {
        TrainingCase training;
        training.precision = specs::Precision::fp64;
        training.optimizer = specs::OptimizerKind::adamw;
        training.schedule = kind;
        training.pipeline = pipeline;
        training.virtual_stages = kind == specs::ScheduleKind::zero_bubble_v ? 2 : 1;
        training.micro_batches = micro_batches;
        training.tensor = 8 / pipeline == 4 ? 2 : 1;
        training.recomputation = micro_batches == 3 ? specs::Recomputation::full : specs::Recomputation::none;
        if (micro_batches == 8) training.cut = Cut::sub_layer;
        cases.push_back(training);
      }
  expect_all_equal(cases);
}

TEST_F(NightlyEqualityMatrix, EveryPairOfFeaturesEqualsOneProcessInFp64) {
  expect_all_equal(paired_placements(capabilities(), times_each_pair));
}

TEST_F(NightlyEqualityMatrix, HalfOfThePairsEqualOneProcessInFp32) {
  std::vector<TrainingCase> cases;
  const std::vector<TrainingCase> pairs = paired_placements(capabilities(), times_each_pair);
  for (std::size_t i = 0; i < pairs.size(); i += 2) cases.push_back(in_fp32(pairs[i]));
  expect_all_equal(cases);
}

TEST_F(NightlyEqualityMatrix, TheWholeProductEqualsOneProcessInFp64) {
  expect_all_equal(all_placements(capabilities()));
}

}  // namespace
}  // namespace runtime::numerics
