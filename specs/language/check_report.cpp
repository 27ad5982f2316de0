#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/checks.h"
#include "specs/language/value_tree.h"

namespace specs {

void CheckReport::add(Severity severity, const std::vector<std::string>& paths, std::string message,
                      std::string remedy) {
  for (const std::string& path : paths)
    if (positions_.failed(path)) return;
  Diagnostic diagnostic = diagnostic_at(positions_.find(paths), std::move(message), std::move(remedy));
  diagnostic.severity = severity;
  diagnostics_.add(std::move(diagnostic));
}

void CheckReport::error(const std::vector<std::string>& paths, std::string message, std::string remedy) {
  add(Severity::error, paths, std::move(message), std::move(remedy));
}

void CheckReport::warning(const std::vector<std::string>& paths, std::string message, std::string remedy) {
  add(Severity::warning, paths, std::move(message), std::move(remedy));
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
