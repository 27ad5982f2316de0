// Tables of a price: where each second and byte goes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/report/report.h"
#include "specs/plan/cost_breakdown.h"
#include "specs/plan/placement.h"

namespace planner {

enum class TermKind : std::uint8_t { compute, communication, bubble, other };
TermKind kind_of(specs::TimeTerm term);

/// Exposed seconds of each term that has any, largest first, with their share of the step, and the total.
Table time_table(const specs::CostBreakdown& cost);

/// The same with what is hidden behind other work, FLOPs and bytes.
Table detailed_time_table(const specs::CostBreakdown& cost);

/// One row a pipeline rank: how its step splits into compute, communication, bubble and the rest. Empty where
/// the account does not tell ranks apart.
Table rank_time_table(const specs::CostBreakdown& cost, const specs::Placement& placement,
                      std::int64_t layers);

/// Device bytes by class on the first, the fullest and the last pipeline rank, and the total with what is
/// usable.
Table memory_table(const specs::CostBreakdown& cost, std::int64_t usable_device_bytes);

/// Device bytes and units of every pipeline rank.
Table pipeline_rank_table(const specs::CostBreakdown& cost, const specs::Placement& placement,
                          std::int64_t layers, std::int64_t usable_device_bytes);

/// Host and NVMe bytes by class on the fullest pipeline rank; empty where there are none.
Table off_device_table(const specs::CostBreakdown& cost);

}  // namespace planner
