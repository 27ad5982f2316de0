#include "specs/plan/plan.h"

namespace specs {
namespace {

/// The parts of `text` between the separators, none of them empty.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string to_string(const std::vector<RegionDimension>& dimensions) {
  std::string text;
  for (const RegionDimension& dimension : dimensions) {
    if (!text.empty()) text += ' ';
    text += dimension.dimension;
    char separator = '=';
    for (const std::string& value : dimension.values) {
      text += separator;
      text += value;
      separator = ',';
    }
  }
  return text;
}

std::vector<RegionDimension> region_dimensions_from(std::string_view text) {
  std::vector<RegionDimension> dimensions;
  for (const std::string_view part : split(text, ' ')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    RegionDimension dimension{std::string(part.substr(0, equals)), {}};
    for (const std::string_view value : split(part.substr(std::min(equals + 1, part.size())), ','))
      dimension.values.emplace_back(value);
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

}  // namespace specs
