// An error that ends a run with an exit code of its own.
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/launch/exit_codes.h"

namespace runtime {

class RunError : public std::runtime_error {
 public:
  RunError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace runtime
