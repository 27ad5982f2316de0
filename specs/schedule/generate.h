// The generators: one pure function per schedule, compute actions only.
#pragma once

#include <cstdint>
#include <string>

#include "specs/schedule/schedule.h"

namespace specs {

/// Raised when a generator's output changes for the same arguments; stands in the plan beside its name.
std::int64_t generator_version(ScheduleKind kind);

/// Why no such schedule exists, as the failing equation with its numbers and the legal values; empty where it
/// exists. `group` is for interleaved alone: micro-batches that go round together, 0 for `pipeline_ranks`.
std::string schedule_refusal(ScheduleKind kind, std::int64_t pipeline_ranks, std::int64_t virtual_stages,
                             std::int64_t micro_batches, std::int64_t group = 0);

/// The compute actions of every pipeline rank. Requires an empty `schedule_refusal`.
Schedule generate_schedule(ScheduleKind kind, std::int32_t pipeline_ranks, std::int32_t virtual_stages,
                           std::int32_t micro_batches, std::int32_t group = 0);

/// How stages lie on pipeline ranks under this schedule.
StageLayout layout_of(ScheduleKind kind);

}  // namespace specs
