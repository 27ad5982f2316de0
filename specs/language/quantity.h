// Quantities with units as the experiment language writes them: "80 GiB", "25 Gbit/s", "5 us".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace specs {

enum class Unit : std::uint8_t { bytes, bytes_per_second, seconds, flops_per_second, watts };

/// What a number without a unit is taken to be in, for documents and messages: "bytes", "bytes per second" …
std::string_view unit_name(Unit unit);

/// An example with a unit, for messages: "80 GiB".
std::string_view unit_example(Unit unit);

/// "80 GiB" → 85899345920; nothing where it is not a number and a known unit of this kind. GB is 10^9 and GiB
/// 2^30 bytes; "Gbit/s" and "Gbps" are 10^9 bits per second.
std::optional<double> parse_quantity(std::string_view text, Unit unit);

/// The shortest text with a unit that reads back to exactly this value; the bare number where none does.
/// Quoted where it has a unit: TOML.
std::string quantity_toml(double value, Unit unit);

}  // namespace specs
