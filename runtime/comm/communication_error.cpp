#include "runtime/comm/communication_error.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace runtime {
namespace {

std::string describe(CommunicationFailure failure, const std::string& group, const std::string& operation,
                     std::int64_t sequence, const std::vector<std::int64_t>& ranks,
                     const std::string& detail) {
  std::string_view what = "failed";
  if (failure == CommunicationFailure::timeout) what = "timed out";
  if (failure == CommunicationFailure::connection_lost) what = "lost a peer";
  return fmt::format("{} number {} of group {} (ranks {}) {}: {}", operation, sequence, group,
                     fmt::join(ranks, ","), what, detail);
}

}  // namespace

CommunicationError::CommunicationError(CommunicationFailure failure, std::string group, std::string operation,
                                       std::int64_t sequence, std::vector<std::int64_t> ranks,
                                       const std::string& detail)
    : std::runtime_error(describe(failure, group, operation, sequence, ranks, detail)),
      failure_(failure),
      group_(std::move(group)),
      operation_(std::move(operation)),
      sequence_(sequence),
      ranks_(std::move(ranks)) {}

}  // namespace runtime
