#include "specs/plan/placement_violation_list.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specs {

void PlacementViolationList::require_range(const std::string& field, std::int64_t value, std::int64_t low,
                                           std::int64_t high) {
  if (value >= low && value <= high) return;
  refuse(field, fmt::format("{} is not in [{}, {}]", value, low, high));
}

std::string stage_field(std::size_t index, std::string_view field) {
  return fmt::format("stages/{}/{}", index, field);
}

std::string divisors(std::int64_t number) {
  constexpr std::size_t shown = 16;
  std::vector<std::int64_t> found;
  for (std::int64_t candidate = 1; candidate <= std::min(number, largest_degree) && found.size() <= shown;
       ++candidate)
    if (number % candidate == 0) found.push_back(candidate);
  const bool more = found.size() > shown;
  if (more) found.resize(shown);
  return fmt::format("{}{}", fmt::join(found, ", "), more ? ", …" : "");
}

std::int64_t multiply(std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t largest = std::int64_t{1} << 62;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    product = factor != 0 && product > largest / factor ? largest : product * factor;
  return product;
}

}  // namespace specs
