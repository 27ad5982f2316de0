// The keys of [search] that leave something out of the space, one by one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "specs/language/search.h"

namespace planner {

/// A key of [search] that can restrict the space. Its default leaves everything in that changes no
/// mathematics.
struct Restriction {
  std::string_view key;
  std::string_view free_value;  ///< the default as TOML: "[]", "true"
  bool (*restricts)(const specs::SearchSpec& search);
  void (*lift)(specs::SearchSpec& search);
  /// The values it names; 1 for a key that holds one.
  std::size_t (*count)(const specs::SearchSpec& search);
  /// Keeps the value of that index alone.
  void (*keep)(specs::SearchSpec& search, std::size_t index);
};

const std::vector<Restriction>& all_restrictions();

/// Those that `search` sets.
std::vector<const Restriction*> restrictions_of(const specs::SearchSpec& search);

/// "search.tensor = [2, 4]", as `search` has it.
std::string words_of(const Restriction& restriction, const specs::SearchSpec& search);

}  // namespace planner
