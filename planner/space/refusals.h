// How a rule of the space says no: the constraint and the equation that fails, with its numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/legality.h"

namespace planner {

template <class Value>
bool contains(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// An empty restriction allows all.
template <class Value>
bool allowed(const std::vector<Value>& restriction, const Value& value) {
  return restriction.empty() || contains(restriction, value);
}

Refusal refuse(Constraint constraint, std::string equation);

MaybeRefusal restricted(std::string_view name, const std::vector<std::int64_t>& restriction,
                        std::int64_t value);

template <class Enum>
MaybeRefusal restricted_name(std::string_view name, const std::vector<Enum>& restriction, Enum value) {
  if (allowed(restriction, value)) return std::nullopt;
  std::vector<std::string_view> names;
  for (Enum entry : restriction) names.push_back(specs::name_of(entry));
  return refuse(Constraint::search_restriction,
                fmt::format("{} = \"{}\" is not in [search] {} = [{}]", name, specs::name_of(value), name,
                            fmt::join(names, ", ")));
}

/// "96 heads % tensor 5 = 1"
MaybeRefusal divides(std::int64_t total, std::string_view what, std::int64_t degree, std::string_view name,
                     Constraint constraint);

MaybeRefusal unsupported(const specs::StackSpec& stack, std::string_view what);

MaybeRefusal positive(std::string_view name, std::int64_t value);

}  // namespace planner
