// The memory of the placements of the equality matrix.
#include <map>
#include <string>
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
  /// Each feature once, on a GPT and on a Llama by turns.
  static std::vector<numerics::TrainingCase> thinned(const std::vector<numerics::TrainingCase>& placements) {
    std::vector<std::vector<numerics::TrainingCase>> features;
    std::map<std::string, std::size_t> index_of;
    for (const numerics::TrainingCase& placement : placements) {
      numerics::TrainingCase feature = placement;
      feature.model = numerics::TinyModel::gpt;
      const auto [at, is_new] = index_of.try_emplace(feature.name(), features.size());
      if (is_new) features.emplace_back();
      features[at->second].push_back(placement);
    }
    std::vector<numerics::TrainingCase> chosen;
    for (std::size_t i = 0; i < features.size(); ++i) chosen.push_back(features[i][i % features[i].size()]);
    return chosen;
  }
  static void expect_some_singles_predicted(specs::Precision precision) {
    expect_all_predicted(in_precision(precision, thinned(numerics::single_placements(capabilities()))));
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
TEST_F(MemoryMatrix, EveryFeatureOnceHoldsWhatIsPredictedInFp16) {
  expect_some_singles_predicted(specs::Precision::fp16);
}
TEST_F(MemoryMatrix, EveryFeatureOnceHoldsWhatIsPredictedInFp64) {
  expect_some_singles_predicted(specs::Precision::fp64);
}

TEST_F(MemoryMatrix, EveryPairOfFeaturesHoldsWhatIsPredicted) {
  expect_pairs_predicted(specs::Precision::fp32, 1);
}

TEST_F(NightlyMemoryMatrix, EveryFeatureAloneHoldsWhatIsPredictedInFp16AndFp64) {
  for (const specs::Precision precision : {specs::Precision::fp16, specs::Precision::fp64})
    expect_singles_predicted(precision);
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
