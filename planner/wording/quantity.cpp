#include "planner/wording/quantity.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace planner {
namespace {

/// Three significant digits, never in scientific notation.
std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

struct Scale {
  double size;
  std::string_view unit;
};

template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales)
    if (std::abs(value) >= scale.size * 0.9995 || &scale == &scales.back())
      return fmt::format("{} {}", three_digits(value / scale.size), scale.unit);
  return {};
}

constexpr double kibi = 1024;

}  // namespace

std::string format_count(std::int64_t value) { return with_commas(std::to_string(value)); }

std::string with_commas(std::string digits) {
  const std::size_t start = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > start + 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string format_parameters(double value) {
  return scaled(value, std::array<Scale, 4>{{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}}});
}

std::string format_bytes(double bytes) {
  if (std::abs(bytes) < kibi) return fmt::format("{:.0f} B", bytes);
  return scaled(bytes, std::array<Scale, 4>{{{kibi * kibi * kibi * kibi, "TiB"},
                                             {kibi * kibi * kibi, "GiB"},
                                             {kibi * kibi, "MiB"},
                                             {kibi, "KiB"}}});
}

std::string format_seconds(double seconds) {
  constexpr double negligible = 1e-9;  // rounding of sums, never a duration
  if (std::abs(seconds) < negligible) return "0 s";
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (std::abs(seconds) >= 2 * day) return three_digits(seconds / day) + " days";
  if (std::abs(seconds) >= 2 * hour) return three_digits(seconds / hour) + " h";
  if (std::abs(seconds) >= 10 * minute) return three_digits(seconds / minute) + " min";
  return scaled(seconds, std::array<Scale, 3>{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}});
}

std::string format_fraction(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string format_gap(double fraction) {
  if (fraction == 0) return format_fraction(0);
  constexpr double least_printed = 1e-4;
  return fraction < least_printed ? "below 0.01 %" : fmt::format("{:.2f} %", fraction * 100);
}

std::string format_signed_fraction(double fraction) { return fmt::format("{:+.1f} %", fraction * 100); }

std::string format_flops(double flops) {
  return scaled(flops,
                std::array<Scale, 4>{{{1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}}});
}

std::string format_dollars(double dollars) {
  if (std::abs(dollars) >= 1000) return "$" + format_count(std::llround(dollars));
  if (std::abs(dollars) >= 1) return fmt::format("${:.2f}", dollars);
  return fmt::format("${:.2g}", dollars);
}

std::string format_joules(double joules) {
  constexpr double kilowatt_hour = 3.6e6;
  if (std::abs(joules) < 0.0995 * kilowatt_hour)
    return scaled(joules, std::array<Scale, 2>{{{1e-3 * kilowatt_hour, "Wh"}, {1, "J"}}});
  return scaled(joules,
                std::array<Scale, 3>{
                    {{1e6 * kilowatt_hour, "GWh"}, {1e3 * kilowatt_hour, "MWh"}, {kilowatt_hour, "kWh"}}});
}

std::string format_quantity(Quantity quantity, double value) {
  switch (quantity) {
    case Quantity::text:
      return fmt::format("{:g}", value);
    case Quantity::count:
      return format_count(std::llround(value));
    case Quantity::parameters:
      return format_parameters(value);
    case Quantity::bytes:
      return format_bytes(value);
    case Quantity::seconds:
      return format_seconds(value);
    case Quantity::fraction:
      return format_fraction(value);
    case Quantity::signed_fraction:
      return format_signed_fraction(value);
    case Quantity::flops:
      return format_flops(value);
    case Quantity::tokens_per_second:
      return format_count(std::llround(value)) + " tokens/s";
    case Quantity::dollars:
      return format_dollars(value);
    case Quantity::joules:
      return format_joules(value);
  }
  return {};
}

}  // namespace planner
