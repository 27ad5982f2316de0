// A report on standard output, as the user asked for it.
#pragma once

#include "cli/dsplan/arguments.h"
#include "planner/report/report.h"

namespace cli {

/// Text fits the terminal and is coloured only on one.
void print_report(const planner::Report& report, OutputFormat format);

}  // namespace cli
