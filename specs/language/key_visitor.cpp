#include "specs/language/key_visitor.h"

#include <cmath>

#include <fmt/format.h>

namespace specs {

namespace {

constexpr std::int64_t no_maximum = std::numeric_limits<std::int64_t>::max();
constexpr double no_number_maximum = std::numeric_limits<double>::max();

}  // namespace

std::string range_error(std::int64_t value, IntegerRange range) {
  if (value < range.minimum) return fmt::format("{} is below the minimum of {}", value, range.minimum);
  if (value > range.maximum) return fmt::format("{} is above the maximum of {}", value, range.maximum);
  return {};
}

std::string range_error(double value, NumberRange range) {
  if (!std::isfinite(value)) return fmt::format("{} is not a finite number", value);
  if (value < range.minimum) return fmt::format("{} is below the minimum of {}", value, range.minimum);
  if (range.open_minimum && value == range.minimum)
    return fmt::format("{} is not above {}", value, range.minimum);
  if (value > range.maximum) return fmt::format("{} is above the maximum of {}", value, range.maximum);
  if (range.open_maximum && value == range.maximum)
    return fmt::format("{} is not below {}", value, range.maximum);
  return {};
}

std::string describe(IntegerRange range) {
  if (range.maximum == no_maximum) return fmt::format("integer of at least {}", range.minimum);
  return fmt::format("integer from {} to {}", range.minimum, range.maximum);
}

std::string describe(NumberRange range) {
  const std::string_view low = range.open_minimum ? "above" : "of at least";
  if (range.maximum == no_number_maximum) return fmt::format("number {} {}", low, range.minimum);
  return fmt::format("number {} {} and {} {}", low, range.minimum, range.open_maximum ? "below" : "at most",
                     range.maximum);
}

}  // namespace specs
