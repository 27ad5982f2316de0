// How many activations a schedule keeps alive, in closed form.
#pragma once

#include <cstdint>

#include "specs/schedule/schedule.h"

namespace specs {

/// Most (stage, micro-batch) activations alive at once on a pipeline rank, in closed form: from the forward
/// to the end of the backward, or of the weight gradient where it is apart. Exact for gpipe, 1f1b and
/// interleaved; for the zero-bubble kinds exact once `micro_batches` fills the pipeline, else from above.
/// One activation is that of one stage: 1 / virtual_stages of what the rank holds.
std::int64_t peak_in_flight(ScheduleKind kind, std::int64_t pipeline_ranks, std::int64_t virtual_stages,
                            std::int64_t micro_batches, std::int64_t pipeline_rank, std::int64_t group = 0);

}  // namespace specs
