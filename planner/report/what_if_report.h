// `dsplan what-if`: the base, the same placement under the change, and the change planned anew.
#pragma once

#include <string>

#include "planner/questions/what_if.h"
#include "planner/report/report.h"

namespace planner {

Report what_if_report(const WhatIf& answer, const std::string& change);

}  // namespace planner
