// The LibTorch that the runtime was built with.
#pragma once

#include <string>

namespace runtime {

std::string libtorch_version();  ///< "2.15.0"

}  // namespace runtime
