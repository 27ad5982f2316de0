#include "specs/language/quantity.h"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace specs {
namespace {

TEST(Quantity, TellsPowersOfTwoFromPowersOfTen) {
  EXPECT_EQ(parse_quantity("80 GiB", Unit::bytes), 85899345920.0);
  EXPECT_EQ(parse_quantity("80GB", Unit::bytes), 80e9);
  EXPECT_EQ(parse_quantity(" 1.5 TB ", Unit::bytes), 1.5e12);
}

TEST(Quantity, TellsBitsFromBytes) {
  EXPECT_EQ(parse_quantity("25 Gbit/s", Unit::bytes_per_second), 3.125e9);
  EXPECT_EQ(parse_quantity("25 Gbps", Unit::bytes_per_second), 3.125e9);
  EXPECT_EQ(parse_quantity("25 GB/s", Unit::bytes_per_second), 25e9);
}

TEST(Quantity, IsExactInDecimalUnits) {
  EXPECT_EQ(parse_quantity("1.9 us", Unit::seconds), 1.9e-6);
  EXPECT_EQ(parse_quantity("10 min", Unit::seconds), 600);
}

TEST(Quantity, RefusesWhatHasNoUnitOrTheWrongOne) {
  for (const char* text :
       {"", " ", "80", "GiB", "80 GiB/s", "80 gib", "nan GiB", "inf GB", "80 GiB x", "1e999 GB"})
    EXPECT_FALSE(parse_quantity(text, Unit::bytes)) << text;
  EXPECT_FALSE(parse_quantity("25 Gbit", Unit::bytes_per_second));
}

TEST(Quantity, IsWrittenShortAndReadsBackExactly) {
  EXPECT_EQ(quantity_toml(85899345920.0, Unit::bytes), "\"80 GiB\"");
  EXPECT_EQ(quantity_toml(80e9, Unit::bytes), "\"80 GB\"");
  EXPECT_EQ(quantity_toml(300e9, Unit::bytes_per_second), "\"300 GB/s\"");
  EXPECT_EQ(quantity_toml(0, Unit::seconds), "0");
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    const double value = std::exp(std::uniform_real_distribution<double>(-20, 40)(random));
    for (const Unit unit : {Unit::bytes_per_second, Unit::seconds, Unit::flops_per_second, Unit::watts}) {
      const std::string text = quantity_toml(value, unit);
      const double read = text.front() == '"'
                              ? parse_quantity(text.substr(1, text.size() - 2), unit).value_or(-1)
                              : std::stod(text);
      EXPECT_EQ(read, value) << text;
    }
  }
}

}  // namespace
}  // namespace specs
