// The text form of a schedule: one line a pipeline rank.
//
//   line   = item*                 separated by spaces
//   item   = token | "(" item* ")" "x" count [ "+" step ]
//   token  = [ "&" ] [ stage ":" ] letters [ micro_batch [ "-" last_micro_batch ] ]
//
// The letters are those of ActionKind; "&" stands before an action that runs together with the one before it.
// The stage stands where it is not the only one of the rank. Each round of a group adds `step` (1 where it is
// not written) to the micro-batches inside: "F0-3 (F4 B0)x28" is F0 F1 F2 F3 F4 B0 F5 B1 …
#pragma once

#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/schedule/schedule.h"

namespace specs {

/// One line per pipeline rank, as short as repetition allows.
std::vector<std::string> to_text(const Schedule& schedule);

/// The inverse. `shape` gives everything but the actions. An error stands at `starts[rank]` moved by the
/// offset in the line; where `starts` is empty, at line rank + 1 of `name`. Says nothing about whether the
/// schedule is right: `verify` does.
Result<Schedule> from_text(const Schedule& shape, const std::vector<std::string>& lines,
                           const std::string& name = "schedule",
                           const std::vector<SourcePosition>& starts = {});

}  // namespace specs
