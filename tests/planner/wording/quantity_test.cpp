#include "planner/wording/quantity.h"

#include <gtest/gtest.h>

namespace planner {
namespace {

TEST(Quantity, BytesScaleInPowersOfTwo) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(80.0 * (1 << 30)), "80.0 GiB");
  EXPECT_EQ(format_bytes(-3.0 * (1 << 20)), "-3.00 MiB");
}

TEST(Quantity, SecondsKeepThreeDigitsAtEveryScale) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(12.345), "12.3 s");
  EXPECT_EQ(format_seconds(0.00123), "1.23 ms");
  EXPECT_EQ(format_seconds(4.5e-6), "4.50 µs");
  EXPECT_EQ(format_seconds(599), "599 s");
  EXPECT_EQ(format_seconds(3 * 3600), "3.00 h");
  EXPECT_EQ(format_seconds(34 * 86400), "34.0 days");
}

TEST(Quantity, CountsAreGroupedInThrees) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1024), "1,024");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
}

TEST(Quantity, ParametersAndMoneyReadAsPeopleSayThem) {
  EXPECT_EQ(format_parameters(174.6e9), "175 B");
  EXPECT_EQ(format_parameters(124439808), "124 M");
  EXPECT_EQ(format_dollars(4.6e6), "$4,600,000");
  EXPECT_EQ(format_dollars(12.5), "$12.50");
  EXPECT_EQ(format_signed_fraction(0.031), "+3.1 %");
}

TEST(Quantity, AGapThatIsThereIsNotPrintedAsNone) {
  EXPECT_EQ(format_gap(0), "0.0 %");
  EXPECT_EQ(format_gap(0.00541), "0.54 %");
  EXPECT_EQ(format_gap(0.0001), "0.01 %");
  EXPECT_EQ(format_gap(0.00002), "below 0.01 %");
}

TEST(Quantity, EnergyOfAShortStepIsNotNothing) {
  EXPECT_EQ(format_joules(2.2e6), "0.61 kWh");
  EXPECT_EQ(format_joules(7200), "2.00 Wh");
  EXPECT_EQ(format_joules(180000), "50.0 Wh");
  EXPECT_EQ(format_joules(12), "12.0 J");
}

}  // namespace
}  // namespace planner
