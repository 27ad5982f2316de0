// The verifier: proves a schedule, compute-only or lowered, and shares no code with what made it.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/schedule/schedule.h"

namespace specs {

/// Empty where the schedule is right; else the first rule that is broken, with pipeline rank and action
/// index: every stage and micro-batch on its own rank, one forward and one backward (or input and weight
/// gradient) each, in an order that the dependencies across ranks allow; activations alive within what the
/// schedule's kind promises; and, where communication is placed: every send received once, in the same order
/// on each directed pair, received before use and sent after it was made; reductions after the last gradient;
/// and no deadlock, neither where sends are buffered nor where they block until received.
Diagnostics verify(const Schedule& schedule);

/// Counted from the actions: the most (stage, micro-batch) activations alive at once on each pipeline rank.
std::vector<std::int64_t> count_peak_in_flight(const Schedule& schedule);

}  // namespace specs
