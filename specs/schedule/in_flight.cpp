#include "specs/schedule/in_flight.h"

#include <algorithm>

namespace specs {

std::int64_t peak_in_flight(ScheduleKind kind, std::int64_t pipeline_ranks, std::int64_t virtual_stages,
                            std::int64_t micro_batches, std::int64_t pipeline_rank, std::int64_t group) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return micro_batches;
    case ScheduleKind::one_forward_one_backward:
      return std::min(pipeline_ranks - pipeline_rank, micro_batches);
    case ScheduleKind::interleaved: {
      // The first backward waits until the group has passed all chunks but the last, plus the way to the last
      // rank and back (Narayanan et al. 2021, section 2.2).
      const std::int64_t groups =
          std::max<std::int64_t>(1, micro_batches / (group == 0 ? pipeline_ranks : group));
      const std::int64_t together = (micro_batches + groups - 1) / groups;
      const std::int64_t ahead = 2 * (pipeline_ranks - pipeline_rank - 1) + (virtual_stages - 1) * together;
      return std::min(ahead + 1, micro_batches * virtual_stages);
    }
    case ScheduleKind::zero_bubble_h1:
      return std::min(pipeline_ranks, micro_batches);
    case ScheduleKind::zero_bubble_h2:
      return std::min(2 * pipeline_ranks - 1, micro_batches);
    case ScheduleKind::zero_bubble_v:
      return std::min(2 * pipeline_ranks, 2 * micro_batches);
    case ScheduleKind::dual_pipe_v:
      return 2 * pipeline_ranks + 1;
  }
  return 0;
}

}  // namespace specs
