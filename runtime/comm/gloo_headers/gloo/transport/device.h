// What ProcessGroupGloo.hpp mentions of Gloo's transport; the definitions are in libtorch_cpu.
#pragma once

#include <memory>

namespace gloo::transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace gloo::transport
