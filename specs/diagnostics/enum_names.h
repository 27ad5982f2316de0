// One table of names per enumeration, shared by the TOML reader, plan.json and the tables that commands
// print.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specs {

/// Specialise with `static constexpr std::array<std::pair<Enum, std::string_view>, N> names`.
template <class Enum>
struct EnumNames;

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  for (const auto& [candidate, name] : EnumNames<Enum>::names)
    if (candidate == value) return name;
  return "?";
}

template <class Enum>
constexpr std::optional<Enum> from_name(std::string_view text) {
  for (const auto& [candidate, name] : EnumNames<Enum>::names)
    if (name == text) return candidate;
  return std::nullopt;
}

template <class Enum>
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& entry : EnumNames<Enum>::names) names.emplace_back(entry.second);
  return names;
}

}  // namespace specs
