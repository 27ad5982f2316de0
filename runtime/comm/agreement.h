// Doing something on every rank, and knowing on every rank how it went on all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace runtime {

struct Agreement {
  std::vector<std::string> texts;  ///< what each rank returned, by rank of the group
  std::string error;               ///< of the first rank that threw, with its number; empty where none did

  bool ok() const { return error.empty(); }
};

/// Collective: each rank does `action` and tells what it returned (any bytes) or threw. Communication errors
/// are thrown; all others are agreed on.
Agreement agree(const Communicator& ranks, const std::function<std::string()>& action);

}  // namespace runtime
