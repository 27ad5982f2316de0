// Which regions of a certificate hold a member: for each value of each dimension the regions that admit it,
// as a set of bits, so that a member costs as many intersections as there are dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/certificate/claimed_region.h"

namespace planner {

class RegionIndex {
 public:
  explicit RegionIndex(const std::deque<ClaimedRegion>& regions);

  /// A region other than `region` that holds the member; `none` where there is no other.
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t another_that_holds(const specs::RegularPlacement& member, std::size_t region) const;

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Dimension {
    std::string name;
    Bits unnamed;                                  ///< regions that leave the dimension free
    std::unordered_map<std::string, Bits> admits;  ///< by value, those among them included
  };
  std::size_t regions_ = 0;
  std::size_t words_ = 0;
  std::vector<Dimension> dimensions_;
};

}  // namespace planner
