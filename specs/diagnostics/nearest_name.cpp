#include <algorithm>
#include <cstddef>

#include "specs/diagnostics/diagnostic.h"

namespace specs {

namespace {

/// Edit distance with transposition of neighbours (optimal string alignment), in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Distance to the name or, one more, to what it begins with up to a hyphen: "h100" means "h100-sxm-80gb".
std::size_t distance_to(std::string_view seen, std::string_view name) {
  std::size_t distance = edit_distance(seen, name);
  for (std::size_t hyphen = name.find('-'); hyphen != std::string_view::npos;
       hyphen = name.find('-', hyphen + 1))
    distance = std::min(distance, 1 + edit_distance(seen, name.substr(0, hyphen)));
  return distance;
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view seen, const std::vector<std::string>& known) {
  // Beyond this no known name can be near, and the distance of a huge text would take its time.
  constexpr std::size_t longest_name = 200;
  if (seen.empty() || seen.size() > longest_name) return std::nullopt;
  const std::size_t limit = std::max<std::size_t>(2, seen.size() / 3);
  std::optional<std::string> nearest;
  std::size_t smallest = limit + 1;
  for (const std::string& name : known) {
    const std::size_t distance = distance_to(seen, name);
    // A name that shares nothing with what was seen is no suggestion ("tp" for "dp" is, "x" for "ab" is not).
    if (distance > limit || distance >= std::max(seen.size(), name.size())) continue;
    const bool longer_start =
        nearest && distance == smallest && common_prefix(seen, name) > common_prefix(seen, *nearest);
    if (distance < smallest || longer_start) {
      smallest = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace specs
