// Bars of the page: the memory of every pipeline rank by class, the step by term.
#pragma once

#include <cstdint>
#include <string>

#include "specs/plan/plan.h"

namespace planner {

/// A bar a pipeline rank, stacked by class, on a track as long as the device's usable memory; neighbours that
/// are equal share a bar. With a legend.
std::string memory_bars(const specs::CostBreakdown& cost, std::int64_t usable_device_bytes);

/// A bar for each term on the critical path, the longest first.
std::string time_bars(const specs::CostBreakdown& cost);

}  // namespace planner
