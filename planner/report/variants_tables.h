// An answer beside the same placement under a change and beside the change planned anew, measure by measure.
#pragma once

#include <array>

#include "planner/report/report.h"
#include "specs/plan/plan.h"

namespace planner {

/// Base, the same placement, planned anew; null where there is none. The tables below need a base.
using Variants = std::array<const specs::Plan*, 3>;

/// What each variant is.
Facts variant_placements(const Variants& variants);

/// Time, throughput, memory, money, checkpoints, and sizes and work of the model where the change is of it;
/// with the change against the base.
Table variant_measures(const Variants& variants);

/// Device memory by class on the fullest pipeline rank of each.
Table variant_memory(const Variants& variants);

/// Exposed seconds by term.
Table variant_times(const Variants& variants);

}  // namespace planner
