#include "specs/plan/placement_violation_list.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specs {

void PlacementViolationList::refuse_range(std::string field, std::int64_t value, std::int64_t low,
                                          std::int64_t high) {
  refuse(std::move(field), fmt::format("{} is not in [{}, {}]", value, low, high));
}

namespace {

/// "stages/3/mesh/tensor": 3 and "mesh/tensor"; nothing for the field of no stage.
std::optional<std::pair<std::size_t, std::string_view>> stage_of(std::string_view field) {
  constexpr std::string_view lead = "stages/";
  if (!field.starts_with(lead)) return std::nullopt;
  const std::string_view rest = field.substr(lead.size());
  std::size_t stage = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), stage);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '/') return std::nullopt;
  return std::pair{stage, rest.substr(static_cast<std::size_t>(end - rest.data()) + 1)};
}

/// "stages 0 to 95", "stages 0, 1, 4".
std::string named(const std::vector<std::size_t>& stages) {
  constexpr std::size_t shown = 8;
  if (stages.back() - stages.front() + 1 == stages.size() && stages.size() > 2)
    return fmt::format("stages {} to {}", stages.front(), stages.back());
  if (stages.size() <= shown) return fmt::format("stages {}", fmt::join(stages, ", "));
  return fmt::format("stages {}, … ({} in all)", fmt::join(stages.begin(), stages.begin() + shown, ", "),
                     stages.size());
}

}  // namespace

std::vector<PlacementViolation> PlacementViolationList::take() {
  std::vector<PlacementViolation> merged;
  std::vector<std::vector<std::size_t>> stages;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> alike;
  for (PlacementViolation& violation : violations_) {
    const auto stage = stage_of(violation.field);
    if (stage) {
      const auto [known, first] =
          alike.try_emplace({std::string(stage->second), violation.message, violation.remedy}, merged.size());
      if (!first) {
        stages[known->second].push_back(stage->first);
        continue;
      }
    }
    stages.push_back(stage ? std::vector{stage->first} : std::vector<std::size_t>{});
    merged.push_back(std::move(violation));
  }
  for (std::size_t i = 0; i < merged.size(); ++i)
    if (stages[i].size() > 1) merged[i].message += fmt::format(" ({})", named(stages[i]));
  violations_.clear();
  return merged;
}

StageField::operator std::string() const { return fmt::format("stages/{}/{}", index, name); }

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
