#include "tests/published/nearest_device.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "specs/language/catalog.h"

namespace published {
namespace {

/// "NVIDIA_H100-SXM5 80GB" → nvidia, h100, sxm5, 80gb.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!parts.back().empty())
      parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

int likeness(const std::vector<std::string>& wanted, const std::vector<std::string>& offered) {
  constexpr int same_model = 100;
  constexpr int same_part = 10;
  const auto has = [&wanted](const std::string& part) {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&part](const std::string& each) { return each.starts_with(part); });
  };
  if (offered.empty() || !has(offered.front())) return 0;
  int score = same_model;
  for (std::size_t i = 1; i < offered.size(); ++i)
    score += has(offered[i]) ? same_part : offered[i] == "sxm" ? 1 : -1;
  return score;
}

}  // namespace

std::string nearest_device(std::string_view name) {
  const std::vector<std::string> wanted = parts_of(name);
  std::string nearest;
  int best = 0;
  for (const std::string& node_name : specs::catalog_names(specs::CatalogKind::node)) {
    const auto node = specs::catalog_node(node_name);
    if (!node) continue;
    const int score = likeness(wanted, parts_of(node->device.name));
    if (score > best) {
      best = score;
      nearest = node->device.name;
    }
  }
  return nearest;
}

}  // namespace published
