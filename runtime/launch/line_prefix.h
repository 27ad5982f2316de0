// What stands before each line that a rank prints, so that lines of several ranks and hosts can be told
// apart.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

/// "HOST:rank N: ", with this host's name.
std::string line_prefix(std::int64_t rank);

}  // namespace runtime
