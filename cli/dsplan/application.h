// dsplan as a function, so that tests run it without a process.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/dsplan/output/text.h"

namespace cli {

/// Runs `dsplan` with the arguments that follow the program's name and returns its exit code.
int run_dsplan(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
               const TextStyle& style);

}  // namespace cli
