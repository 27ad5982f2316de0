// The schedules that the tests of this folder walk over.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "specs/schedule/generate.h"

namespace specs {

struct ScheduleCase {
  ScheduleKind kind;
  std::int32_t pipeline_ranks;
  std::int32_t virtual_stages;
  std::int32_t micro_batches;
  std::int32_t group = 0;

  Schedule generate() const {
    return generate_schedule(kind, pipeline_ranks, virtual_stages, micro_batches, group);
  }
};

inline std::ostream& operator<<(std::ostream& out, const ScheduleCase& c) {
  return out << name_of(c.kind) << " p " << c.pipeline_ranks << " v " << c.virtual_stages << " m "
             << c.micro_batches << " group " << c.group;
}

/// Every legal case with p 1 … 8, m 1 … 16, v 1 … 4 and groups of p, p + 1 and 2p.
inline std::vector<ScheduleCase> all_small_cases() {
  std::vector<ScheduleCase> cases;
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::names)
    for (std::int32_t p = 1; p <= 8; ++p)
      for (std::int32_t v = 1; v <= 4; ++v)
        for (std::int32_t m = 1; m <= 16; ++m)
          for (std::int32_t group : {0, p, p + 1, 2 * p})
            if (schedule_refusal(kind, p, v, m, group).empty()) cases.push_back({kind, p, v, m, group});
  return cases;
}

}  // namespace specs
