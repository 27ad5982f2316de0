// A schedule as a picture for eyes.
#pragma once

#include <string>

#include "specs/schedule/schedule.h"

namespace specs {

/// One row a pipeline rank, one column a time unit: each action as early as the order and the dependencies
/// allow, where F, I and W take one unit, B two and communication nothing. Dots are idle time. With several
/// stages a rank, the stage leads the action. Requires a schedule whose compute actions `verify` accepts;
/// other actions are left out.
std::string to_grid(const Schedule& schedule);

}  // namespace specs
