// How the quantities of this field are written for people: scaled, rounded to what is meaningful, with a
// unit.
#pragma once

#include <cstdint>
#include <string>

namespace planner {

enum class Quantity : std::uint8_t {
  text,
  count,              ///< 1,024
  parameters,         ///< 175 B
  bytes,              ///< powers of two: GiB, MiB, KiB
  seconds,            ///< s, ms, µs; above ten minutes min, h, d
  fraction,           ///< per cent
  signed_fraction,    ///< per cent with its sign
  flops,              ///< TFLOP
  tokens_per_second,  ///< tokens/s, thousands separated
  dollars,            ///< US dollars
  joules,             ///< kWh, MWh
};

std::string format_count(std::int64_t value);
/// A decimal integer of any size, thousands separated.
std::string with_commas(std::string digits);
std::string format_parameters(double value);
std::string format_bytes(double bytes);
std::string format_seconds(double seconds);
std::string format_fraction(double fraction);
/// With what a fraction that is printed to tenths of a per cent would hide.
std::string format_gap(double fraction);
std::string format_signed_fraction(double fraction);
std::string format_flops(double flops);
std::string format_dollars(double dollars);
std::string format_joules(double joules);

/// A number of this quantity; `text` prints it plainly.
std::string format_quantity(Quantity quantity, double value);

}  // namespace planner
