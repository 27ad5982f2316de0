// The memory of the placements of the equality matrix.
#include <vector>

#include <gtest/gtest.h>

#include "runtime/capabilities.h"
#include "tests/memory/memory_fixture.h"

namespace runtime {
namespace {

class MemoryMatrix : public MemoryTest {
 protected:
  static std::vector<MemoryCase> in_precision(specs::Precision precision,
                                              const std::vector<numerics::TrainingCase>& placements) {
    std::vector<MemoryCase> cases;
    for (const numerics::TrainingCase& placement : placements) {
      MemoryCase& added = cases.emplace_back(MemoryCase{placement});
      added.training.precision = precision;
      added.training.sequence_length = 24;
      added.training.overlap_reduction = true;  // as dsrun does; no placement says otherwise
    }
    return cases;
  }
  static void expect_singles_predicted(specs::Precision precision) {
    expect_all_predicted(in_precision(precision, numerics::single_placements(capabilities())));
  }
  static void expect_pairs_predicted(specs::Precision precision, int times) {
    expect_all_predicted(in_precision(precision, numerics::paired_placements(capabilities(), times)));
  }
};

class NightlyMemoryMatrix : public MemoryMatrix {};

TEST_F(MemoryMatrix, EveryFeatureAloneHoldsWhatIsPredictedInFp32) {
  expect_singles_predicted(specs::Precision::fp32);
}
TEST_F(MemoryMatrix, EveryFeatureAloneHoldsWhatIsPredictedInBf16) {
  expect_singles_predicted(specs::Precision::bf16);
}
TEST_F(MemoryMatrix, EveryFeatureAloneHoldsWhatIsPredictedInFp16) {
  expect_singles_predicted(specs::Precision::fp16);
}
TEST_F(MemoryMatrix, EveryFeatureAloneHoldsWhatIsPredictedInFp64) {
  expect_singles_predicted(specs::Precision::fp64);
}

TEST_F(MemoryMatrix, EveryPairOfFeaturesHoldsWhatIsPredicted) {
  expect_pairs_predicted(specs::Precision::fp32, 1);
}

TEST_F(NightlyMemoryMatrix, EveryPairOfFeaturesHoldsWhatIsPredictedBesideOthers) {
  expect_pairs_predicted(specs::Precision::fp32, 3);
}

TEST_F(NightlyMemoryMatrix, EveryPairOfFeaturesHoldsWhatIsPredictedIn16Bits) {
  for (const specs::Precision precision : {specs::Precision::bf16, specs::Precision::fp16})
    expect_pairs_predicted(precision, 1);
}

}  // namespace
}  // namespace runtime
