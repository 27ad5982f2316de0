#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/checks.h"
#include "specs/language/value_tree.h"

namespace specs {

void CheckReport::error(const std::vector<std::string>& paths, std::string message, std::string remedy) {
  diagnostics_.add(diagnostic_at(positions_.find(paths), std::move(message), std::move(remedy)));
}

void CheckReport::warning(const std::vector<std::string>& paths, std::string message, std::string remedy) {
  Diagnostic diagnostic = diagnostic_at(positions_.find(paths), std::move(message), std::move(remedy));
  diagnostic.severity = Severity::warning;
  diagnostics_.add(std::move(diagnostic));
}

std::string divisors_text(std::int64_t number) {
  constexpr std::size_t most = 12;
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    small.push_back(i);
    if (i != number / i) large.push_back(number / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  if (small.size() <= most) return fmt::format("{}", fmt::join(small, ", "));
  const std::vector<std::int64_t> first(small.begin(), small.begin() + most - 1);
  return fmt::format("{}, … {}", fmt::join(first, ", "), small.back());
}

}  // namespace specs
