// The part of the verifier that judges sends, receives, reductions, gathers and reshards.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "specs/schedule/schedule.h"

namespace specs {

/// A broken rule and the action that breaks it; an index past the list means its end.
struct Violation {
  std::size_t rank = 0;
  std::size_t index = 0;
  std::string rule;
};

/// Requires a schedule whose compute actions are complete and in a possible order. A schedule without any
/// communication passes.
std::optional<Violation> check_communication(const Schedule& schedule);

}  // namespace specs
