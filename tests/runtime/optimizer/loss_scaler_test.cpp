#include "runtime/optimizer/loss_scaler.h"

#include <string_view>

#include <gtest/gtest.h>

namespace runtime {
namespace {

specs::LossScalingSpec spec() {
  specs::LossScalingSpec spec;
  spec.initial_scale = 16;
  spec.window = 3;
  spec.hysteresis = 2;
  spec.minimum_scale = 2;
  return spec;
}

/// '.' a step that is finite, 'x' one that overflows.
double scale_after(std::string_view steps) {
  LossScaler scaler(spec(), true);
  for (const char step : steps) scaler.update(step == '.');
  return scaler.scale();
}

TEST(LossScaler, TheFirstOverflowIsForgivenTheNextOnesHalve) {
  EXPECT_EQ(scale_after("x"), 16);
  EXPECT_EQ(scale_after("xx"), 8);
  EXPECT_EQ(scale_after("xxx"), 4);
  EXPECT_EQ(scale_after("x.x"), 8) << "a good step alone forgives nothing";
}

TEST(LossScaler, AWindowOfGoodStepsDoublesAndForgives) {
  EXPECT_EQ(scale_after(".."), 16);
  EXPECT_EQ(scale_after("..."), 32);
  EXPECT_EQ(scale_after("......"), 64);
  EXPECT_EQ(scale_after("..x..."), 32) << "an overflow starts the window anew";
  EXPECT_EQ(scale_after("x...x"), 32) << "the window filled the hysteresis";
}

TEST(LossScaler, IsExhaustedByAnOverflowAtTheFloor) {
  LossScaler scaler(spec(), true);
  for (int step = 0; step < 4; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_FALSE(scaler.exhausted());
  scaler.update(false);
  EXPECT_TRUE(scaler.exhausted());
  EXPECT_EQ(scaler.scale(), 2);
}

/// The defaults, where every step overflows: the first spends the hysteresis, the 17th reaches 1, the 18th
/// ends the run.
TEST(LossScaler, FallsFrom65536To1InSeventeenOverflowsAndEndsWithTheEighteenth) {
  LossScaler scaler({}, true);
  double expected = 65536;
  for (int step = 1; step <= 17; ++step) {
    scaler.update(false);
    if (step > 1) expected /= 2;
    EXPECT_EQ(scaler.scale(), expected) << step;
    EXPECT_FALSE(scaler.exhausted()) << step;
  }
  EXPECT_EQ(scaler.scale(), 1);
  scaler.update(false);
  EXPECT_TRUE(scaler.exhausted());
}

TEST(LossScaler, GoesOnFromItsState) {
  LossScaler first(spec(), true);
  for (const bool finite : {true, false, true, true}) first.update(finite);
  LossScaler second(spec(), true);
  second.restore(first.state());
  first.update(true);
  second.update(true);
  EXPECT_EQ(first.state(), second.state());
  EXPECT_EQ(second.scale(), 32);
}

TEST(LossScaler, StaysAtOneWhereItIsOff) {
  LossScaler scaler(spec(), false);
  scaler.update(false);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_FALSE(scaler.exhausted());
}

}  // namespace
}  // namespace runtime
