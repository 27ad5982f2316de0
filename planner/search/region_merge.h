// Puts regions of neighbouring values together, so that a certificate stays as small as what it says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/search/search_result.h"

namespace planner {

/// The regions of one part of the space for one value of a dimension.
struct ValueRegions {
  std::string value;
  std::vector<Region> regions;
};

/// Regions of the parts together, each with `dimension` restricted to the values it holds for. Regions that
/// say the same of the same box become one with several values; a box that holds for all values does not name
/// the dimension. The parts must be all values of the dimension.
std::vector<Region> merge_regions(std::string_view dimension, std::vector<ValueRegions> parts);

}  // namespace planner
