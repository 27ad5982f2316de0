// A c10d back end over an ordered rank set, and what makes one. Only the sources of this room include it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "runtime/comm/process_groups.h"

namespace runtime {

class ProcessGroup {
 public:
  std::vector<std::int64_t> ranks;  ///< global, in group order
  std::int64_t rank = 0;            ///< of this process, in the group
  c10::intrusive_ptr<c10d::Backend> backend;
  std::int64_t started = 0;  ///< operations so far
};

/// Makes back ends of one kind; what they share (a device, its thread) lives here.
class BackendFactory {
 public:
  virtual ~BackendFactory() = default;
  /// Blocks until all members have called with the same `name`.
  virtual c10::intrusive_ptr<c10d::Backend> make(const NativeStore& store, const std::string& name,
                                                 std::int64_t rank, std::int64_t size) = 0;
};

std::shared_ptr<BackendFactory> make_gloo_factory(const CommunicationOptions& options);
/// Loads the CUDA back end. Errors: std::runtime_error that says what is missing.
std::shared_ptr<BackendFactory> make_nccl_factory(const CommunicationOptions& options);

/// `error` of a c10d call as one line, without its backtrace.
std::string first_line(const std::exception& error);
CommunicationFailure classify(const std::string& message);

}  // namespace runtime
