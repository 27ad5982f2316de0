// A hash of outer points, for tables of what is known of them.
#pragma once

#include <cstddef>

#include "specs/plan/placement.h"

namespace planner {

std::size_t hash_of(const specs::RegularPlacement& point);

}  // namespace planner
