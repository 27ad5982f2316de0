// The version of both programs.
#pragma once

#include <string>

namespace cli {

/// "dsplan 0.1.0" for the program's name.
std::string version_line(const std::string& program);

}  // namespace cli
