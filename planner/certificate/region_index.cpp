#include "planner/certificate/region_index.h"

#include <algorithm>
#include <bit>

namespace planner {

RegionIndex::RegionIndex(const std::deque<ClaimedRegion>& regions)
    : regions_(regions.size()), words_((regions.size() + 63) / 64) {
  const auto set = [](Bits& bits, std::size_t region) {
    bits[region / 64] |= std::uint64_t{1} << region % 64;
  };
  for (const ClaimedRegion& region : regions)
    for (const specs::RegionDimension& claimed : region.claim().dimensions) {
      const bool known = std::any_of(dimensions_.begin(), dimensions_.end(), [&](const Dimension& dimension) {
        return dimension.name == claimed.dimension;
      });
      if (!known) dimensions_.push_back({claimed.dimension, Bits(words_), {}});
    }
  for (Dimension& dimension : dimensions_) {
    for (std::size_t index = 0; index < regions.size(); ++index) {
      const auto& claimed = regions[index].claim().dimensions;
      const auto named =
          std::find_if(claimed.begin(), claimed.end(),
                       [&](const specs::RegionDimension& each) { return each.dimension == dimension.name; });
      if (named == claimed.end()) {
        set(dimension.unnamed, index);
        continue;
      }
      for (const std::string& value : named->values)
        set(dimension.admits.try_emplace(value, Bits(words_)).first->second, index);
    }
    for (auto& [value, bits] : dimension.admits)
      for (std::size_t word = 0; word < words_; ++word) bits[word] |= dimension.unnamed[word];
  }
}

std::size_t RegionIndex::another_that_holds(const specs::RegularPlacement& member, std::size_t region) const {
  Bits holding(words_, ~std::uint64_t{0});
  if (words_ == 0) return none;
  for (const Dimension& dimension : dimensions_) {
    const auto found = dimension.admits.find(certificate_value(member, dimension.name));
    const Bits& admitting = found == dimension.admits.end() ? dimension.unnamed : found->second;
    for (std::size_t word = 0; word < words_; ++word) holding[word] &= admitting[word];
  }
  holding[region / 64] &= ~(std::uint64_t{1} << region % 64);
  for (std::size_t word = 0; word < words_; ++word)
    if (holding[word] != 0) {
      const std::size_t found = word * 64 + static_cast<std::size_t>(std::countr_zero(holding[word]));
      return found < regions_ ? found : none;
    }
  return none;
}

}  // namespace planner
