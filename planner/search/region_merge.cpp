#include "planner/search/region_merge.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace planner {
namespace {

/// Equal for regions that say the same of the same box.
std::string key_of(const Region& region) {
  std::string key(region.rule);
  key += static_cast<char>('0' + static_cast<int>(region.kind));
  for (const specs::RegionDimension& dimension : region.dimensions) {
    key += '|';
    key += dimension.dimension;
    for (const std::string& value : dimension.values) {
      key += ',';
      key += value;
    }
  }
  return key;
}

void join(const Region& region, Region& into) {
  into.candidates += region.candidates;
  into.objective = std::min(into.objective, region.objective);
  into.needed_bytes = std::min(into.needed_bytes, region.needed_bytes);
}

struct Group {
  Region region;
  std::vector<std::string> values;
};

}  // namespace

std::vector<Region> merge_regions(std::string_view dimension, std::vector<ValueRegions> parts) {
  if (parts.size() == 1) return std::move(parts.front().regions);
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> index;
  for (ValueRegions& part : parts)
    for (Region& region : part.regions) {
      const auto [found, added] = index.try_emplace(key_of(region), groups.size());
      if (added) {
        groups.push_back({std::move(region), {part.value}});
      } else {
        Group& group = groups[found->second];
        join(region, group.region);
        group.values.push_back(part.value);
      }
    }
  std::vector<Region> merged;
  merged.reserve(groups.size());
  for (Group& group : groups) {
    if (group.values.size() < parts.size())
      group.region.dimensions.insert(group.region.dimensions.begin(),
                                     {std::string(dimension), std::move(group.values)});
    merged.push_back(std::move(group.region));
  }
  return merged;
}

}  // namespace planner
