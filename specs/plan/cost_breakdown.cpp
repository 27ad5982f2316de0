#include "specs/plan/cost_breakdown.h"

namespace specs {

double CostBreakdown::exposed_seconds(TimeTerm term) const {
  double seconds = 0;
  for (const TimeEntry& entry : time)
    if (entry.term == term && entry.pipeline_rank == -1) seconds += entry.exposed_seconds;
  return seconds;
}

std::int64_t CostBreakdown::device_bytes(std::int64_t pipeline_rank) const {
  std::int64_t bytes = 0;
  for (const MemoryEntry& entry : memory)
    if (entry.location == MemoryLocation::device && entry.pipeline_rank == pipeline_rank)
      bytes += entry.bytes;
  return bytes;
}

}  // namespace specs
