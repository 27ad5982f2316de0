#include "specs/language/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace specs {

namespace {

struct UnitName {
  std::string_view name;
  double factor;
  bool written = true;  ///< false: read only
};

constexpr double kib = 1024;
constexpr double mib = kib * 1024;
constexpr double gib = mib * 1024;
constexpr double tib = gib * 1024;

constexpr std::array<UnitName, 10> byte_units{{{"TiB", tib},
                                               {"GiB", gib},
                                               {"MiB", mib},
                                               {"KiB", kib},
                                               {"PB", 1e15, false},
                                               {"TB", 1e12},
                                               {"GB", 1e9},
                                               {"MB", 1e6},
                                               {"kB", 1e3, false},
                                               {"B", 1, false}}};

constexpr std::array<UnitName, 13> bandwidth_units{{{"TB/s", 1e12},
                                                    {"GB/s", 1e9},
                                                    {"MB/s", 1e6},
                                                    {"kB/s", 1e3, false},
                                                    {"B/s", 1, false},
                                                    {"GiB/s", gib, false},
                                                    {"MiB/s", mib, false},
                                                    {"Tbit/s", 1.25e11, false},
                                                    {"Gbit/s", 1.25e8, false},
                                                    {"Mbit/s", 1.25e5, false},
                                                    {"Gb/s", 1.25e8, false},
                                                    {"Gbps", 1.25e8, false},
                                                    {"Mbps", 1.25e5, false}}};

constexpr std::array<UnitName, 8> time_units{{{"d", 86400, false},
                                              {"h", 3600, false},
                                              {"min", 60, false},
                                              {"s", 1},
                                              {"ms", 1e-3},
                                              {"us", 1e-6},
                                              {"µs", 1e-6, false},
                                              {"ns", 1e-9}}};

constexpr std::array<UnitName, 5> flops_units{
    {{"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s", 1, false}}};

constexpr std::array<UnitName, 3> power_units{{{"MW", 1e6, false}, {"kW", 1e3, false}, {"W", 1}}};

std::span<const UnitName> units_of(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return byte_units;
    case Unit::bytes_per_second:
      return bandwidth_units;
    case Unit::seconds:
      return time_units;
    case Unit::flops_per_second:
      return flops_units;
    case Unit::watts:
      return power_units;
  }
  return {};
}

/// Powers of ten are joined to the decimal text, so that "1.9 us" is exactly the double that 1.9e-6 is.
double scaled(std::string_view decimal, double number, double factor) {
  const auto read = [](const std::string& text) {
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  const std::string power = fmt::format("e{}", std::lround(std::log10(factor)));
  const bool has_exponent = decimal.find_first_of("eE") != std::string_view::npos;
  if (has_exponent || read("1" + power) != factor) return number * factor;
  return read(std::string(decimal) + power);
}

}  // namespace

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "bytes";
    case Unit::bytes_per_second:
      return "bytes per second";
    case Unit::seconds:
      return "seconds";
    case Unit::flops_per_second:
      return "FLOP per second";
    case Unit::watts:
      return "watts";
  }
  return "";
}

std::string_view unit_example(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "80 GiB";
    case Unit::bytes_per_second:
      return "25 Gbit/s";
    case Unit::seconds:
      return "5 us";
    case Unit::flops_per_second:
      return "312 TFLOP/s";
    case Unit::watts:
      return "400 W";
  }
  return "";
}

std::optional<double> parse_quantity(std::string_view text, Unit unit) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  while (text.ends_with(' ')) text.remove_suffix(1);

  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  const std::string_view decimal = text.substr(0, static_cast<std::size_t>(end - text.data()));
  std::string_view name = text.substr(decimal.size());
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const UnitName& candidate : units_of(unit))
    if (candidate.name == name) return scaled(decimal, number, candidate.factor);
  return std::nullopt;
}

std::string quantity_toml(double value, Unit unit) {
  constexpr int most_digits = 12;
  const auto reads_back = [value, unit](const std::string& text) {
    const auto read = parse_quantity(text, unit);
    return read && (unit == Unit::bytes ? std::floor(*read) : *read) == value;
  };
  std::string shortest;
  for (const UnitName& candidate : units_of(unit)) {
    if (!candidate.written || std::abs(value) < candidate.factor) continue;
    for (int digits = 1; digits <= most_digits; ++digits) {
      const std::string text = fmt::format("{:.{}g} {}", value / candidate.factor, digits, candidate.name);
      if (text.find("e+") != std::string::npos || !reads_back(text)) continue;
      if (shortest.empty() || text.size() < shortest.size()) shortest = text;
      break;
    }
  }
  if (!shortest.empty()) return '"' + shortest + '"';
  const bool integer_valued = std::abs(value) < 9e15 && value == std::floor(value);
  return integer_valued ? fmt::format("{}", static_cast<std::int64_t>(value)) : fmt::format("{}", value);
}

}  // namespace specs
