#include "runtime/version.h"

#include <torch/headeronly/version.h>

namespace runtime {

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace runtime
