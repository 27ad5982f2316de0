// What a rank communicated: calls and bytes per group, operation and dtype, and on request every call in
// order.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>

#include "specs/diagnostics/enum_names.h"

namespace runtime {

enum class CommunicationOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  send,
  receive,
  barrier,
};

}  // namespace runtime

template <>
struct specs::EnumNames<runtime::CommunicationOp> {
  static constexpr std::array<std::pair<runtime::CommunicationOp, std::string_view>, 8> names{{
      {runtime::CommunicationOp::all_reduce, "all_reduce"},
      {runtime::CommunicationOp::all_gather, "all_gather"},
      {runtime::CommunicationOp::reduce_scatter, "reduce_scatter"},
      {runtime::CommunicationOp::broadcast, "broadcast"},
      {runtime::CommunicationOp::all_to_all, "all_to_all"},
      {runtime::CommunicationOp::send, "send"},
      {runtime::CommunicationOp::receive, "receive"},
      {runtime::CommunicationOp::barrier, "barrier"},
  }};
};

namespace runtime {

/// One operation of one rank. `payload_bytes` is the whole tensor that the group works on: the reduced tensor
/// of an all-reduce, the gathered output, the input of a reduce-scatter or all-to-all, the message.
struct CommunicationCall {
  std::string group;  ///< the role: "tensor", "data", "pipeline" …
  CommunicationOp op = CommunicationOp::all_reduce;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::int64_t payload_bytes = 0;
  std::int64_t group_size = 1;
  std::int64_t peer = -1;  ///< group rank of the other side (send, receive) or of the root (broadcast)
};

/// Bytes that one rank must send for a payload: all-reduce 2(n−1)/n, all-gather, reduce-scatter and
/// all-to-all (n−1)/n, broadcast (n−1)/n averaged over the ranks, send 1, receive and barrier 0.
double wire_bytes(CommunicationOp op, std::int64_t payload_bytes, std::int64_t group_size);

struct TrafficKey {
  std::string group;
  CommunicationOp op = CommunicationOp::all_reduce;
  c10::ScalarType dtype = c10::ScalarType::Float;
  auto operator<=>(const TrafficKey&) const = default;
};

struct TrafficCount {
  std::int64_t calls = 0;
  std::int64_t payload_bytes = 0;
  double wire_bytes = 0;
};

/// The record of one rank, shared by all its communicators. Groups of one rank are not recorded. Used from
/// the training thread alone.
class Traffic {
 public:
  void record(const CommunicationCall& call);
  void reset();

  const std::map<TrafficKey, TrafficCount>& counts() const { return counts_; }
  /// Summed over dtypes; an empty group means all groups.
  TrafficCount total(std::string_view group, CommunicationOp op) const;

  void trace(bool enabled) { tracing_ = enabled; }
  const std::vector<CommunicationCall>& calls() const { return calls_; }

  /// Fault injection: an operation for which this returns true is counted but not performed.
  std::function<bool(const CommunicationCall&)> skip;

 private:
  std::map<TrafficKey, TrafficCount> counts_;
  std::vector<CommunicationCall> calls_;
  bool tracing_ = false;
};

}  // namespace runtime
