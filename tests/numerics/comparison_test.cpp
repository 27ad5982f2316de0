// What the equality matrix measures with: no difference may hide behind another.
#include "tests/numerics/comparison.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace runtime::numerics {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TrainingOutcome outcome() {
  TrainingOutcome result;
  result.losses = result.gradient_norms = {4, 3, 2};
  for (Tensors* tensors : {&result.gradients, &result.weights})
    *tensors = {{"first", {1, 2}}, {"k_proj.bias", {1, 1}}, {"last", {3, 4}}};
  for (Givers* givers : {&result.gradient_givers, &result.weight_givers})
    *givers = {{"first", {{0, 0}}}, {"k_proj.bias", {{0, 0}}}, {"last", {{0, 0}, {1, 1}}}};
  return result;
}

bool is_equal(const TrainingOutcome& result, bool adam = false) {
  return within(compare(result, outcome(), adam), bars_for(specs::Precision::fp32));
}

TEST(Comparison, ARunIsEqualToItself) { EXPECT_TRUE(is_equal(outcome())); }

TEST(Comparison, AnyStepThatIsAnotherOrNoNumberCounts) {
  for (const double wrong : {4.1, nan})
    for (std::size_t step = 0; step < 3; ++step) {
      TrainingOutcome result = outcome();
      result.losses[step] = wrong;
      EXPECT_FALSE(is_equal(result)) << wrong << " at " << step;
      result = outcome();
      result.gradient_norms[step] = wrong;
      EXPECT_FALSE(is_equal(result)) << wrong << " at " << step;
    }
}

TEST(Comparison, AnyElementThatIsAnotherOrNoNumberCounts) {
  for (const double wrong : {4.1, nan})
    for (const char* name : {"first", "last"})
      for (const std::size_t element : {0, 1}) {
        TrainingOutcome result = outcome();
        result.gradients[name][element] = wrong;
        EXPECT_FALSE(is_equal(result)) << wrong << " in " << name;
        result = outcome();
        result.weights[name][element] = wrong;
        EXPECT_FALSE(is_equal(result, true)) << wrong << " in " << name;
      }
}

TEST(Comparison, TellsTheTensorAndTheRankThatGaveTheElement) {
  TrainingOutcome result = outcome();
  result.gradients["first"][0] = 1.01;
  result.gradients["last"][1] = nan;
  const Differences found = compare(result, outcome(), false);
  EXPECT_EQ(found.gradient.name, "last");
  EXPECT_EQ(found.gradient.rank, 1);
}

TEST(Comparison, TensorsThatLackOrAreTooManyAreDefects) {
  TrainingOutcome lacks = outcome(), more = outcome(), smaller = outcome();
  lacks.gradients.erase("last");
  more.weights["another"] = {0};
  smaller.weights["first"] = {1};
  for (const TrainingOutcome& result : {lacks, more, smaller}) EXPECT_FALSE(is_equal(result));
}

/// Their gradient is zero but for rounding, which AdamW makes updates of.
TEST(Comparison, OnlyWeightsOfKeyBiasesUnderAdamwAreLeftOut) {
  TrainingOutcome result = outcome();
  result.weights["k_proj.bias"][0] = 2;
  EXPECT_TRUE(is_equal(result, true));
  EXPECT_FALSE(is_equal(result, false));
  result.gradients["k_proj.bias"][0] = 2;
  EXPECT_FALSE(is_equal(result, true));
}

}  // namespace
}  // namespace runtime::numerics
