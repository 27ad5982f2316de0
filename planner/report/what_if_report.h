// `dsplan what-if`: the base, the same placement under the change, and the change planned anew.
#pragma once

#include <string>

#include "planner/report/report.h"
#include "planner/what_if.h"

namespace planner {

Report what_if_report(const WhatIf& answer, const std::string& change);

}  // namespace planner
