// What went wrong in a collective, with everything needed to find the rank that is to blame.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace runtime {

enum class CommunicationFailure : std::uint8_t {
  timeout,          ///< a peer did not arrive in time
  connection_lost,  ///< a peer ended; its own error is the cause
  other,
};

/// Thrown by `Communicator` and `PendingWork`. After one, every communicator of the process is unusable.
class CommunicationError : public std::runtime_error {
 public:
  CommunicationError(CommunicationFailure failure, std::string group, std::string operation,
                     std::int64_t sequence, std::vector<std::int64_t> ranks, const std::string& detail);

  CommunicationFailure failure() const { return failure_; }
  const std::string& group() const { return group_; }
  const std::string& operation() const { return operation_; }
  /// How many operations this process had started on the group before this one.
  std::int64_t sequence() const { return sequence_; }
  const std::vector<std::int64_t>& ranks() const { return ranks_; }

 private:
  CommunicationFailure failure_;
  std::string group_;
  std::string operation_;
  std::int64_t sequence_;
  std::vector<std::int64_t> ranks_;
};

}  // namespace runtime
