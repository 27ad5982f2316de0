// The equality matrix: whatever the placement, training equals the single-process run up to reassociation.
#include <cstddef>
#include <vector>

#include "runtime/capabilities.h"
#include "tests/numerics/matrix_fixture.h"

namespace runtime::numerics {
namespace {

/// Every pair of values stands in two placements, so that a pair that one placement hides shows in another.
constexpr int times_each_pair = 2;

std::vector<TrainingCase> singles() {
  std::vector<TrainingCase> cases = single_placements(capabilities());
  const std::vector<TrainingCase> generated = generator_only_placements(capabilities());
  cases.insert(cases.end(), generated.begin(), generated.end());
  return cases;
}

/// AdamW turns the rounding noise of fp32 gradients near zero into updates; momentum does not.
std::vector<TrainingCase> in_fp32(std::vector<TrainingCase> cases) {
  for (TrainingCase& training : cases) {
    training.precision = specs::Precision::fp32;
    training.optimizer = specs::OptimizerKind::sgd;
  }
  return cases;
}

class EqualityMatrix : public MatrixTest {};

TEST_F(EqualityMatrix, EveryFeatureAloneEqualsOneProcessInFp64) { expect_all_equal(singles()); }

TEST_F(EqualityMatrix, EveryPairOfFeaturesEqualsOneProcessInFp64) {
  expect_all_equal(paired_placements(capabilities(), times_each_pair));
}

TEST_F(EqualityMatrix, EveryFeatureAloneEqualsOneProcessInFp32) { expect_all_equal(in_fp32(singles())); }

TEST_F(EqualityMatrix, HalfOfThePairsEqualOneProcessInFp32) {
  std::vector<TrainingCase> cases;
  const std::vector<TrainingCase> pairs = paired_placements(capabilities(), times_each_pair);
  for (std::size_t i = 0; i < pairs.size(); i += 2) cases.push_back(pairs[i]);
  expect_all_equal(in_fp32(cases));
}

/// In parts, so that any of them can be run alone.
class NightlyEqualityMatrix : public MatrixTest, public testing::WithParamInterface<std::size_t> {};
constexpr std::size_t parts_of_the_product = 128;

TEST_P(NightlyEqualityMatrix, TheWholeProductEqualsOneProcessInFp64) {
  static const std::vector<TrainingCase> product = all_placements(capabilities());
  std::vector<TrainingCase> part;
  for (std::size_t i = GetParam(); i < product.size(); i += parts_of_the_product) part.push_back(product[i]);
  expect_all_equal(part);
}

INSTANTIATE_TEST_SUITE_P(NightlyPart, NightlyEqualityMatrix,
                         testing::Range(std::size_t{0}, parts_of_the_product));

}  // namespace
}  // namespace runtime::numerics
