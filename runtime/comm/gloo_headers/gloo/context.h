// What ProcessGroupGloo.hpp mentions of Gloo's context; the definition is in libtorch_cpu.
#pragma once

#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
