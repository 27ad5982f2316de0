#include "runtime/comm/traffic.h"

namespace runtime {

double wire_bytes(CommunicationOp op, std::int64_t payload_bytes, std::int64_t group_size) {
  const auto bytes = static_cast<double>(payload_bytes);
  const auto n = static_cast<double>(group_size);
  switch (op) {
    case CommunicationOp::all_reduce:
      return 2 * (n - 1) / n * bytes;
    case CommunicationOp::all_gather:
    case CommunicationOp::reduce_scatter:
    case CommunicationOp::all_to_all:
    case CommunicationOp::broadcast:
      return (n - 1) / n * bytes;
    case CommunicationOp::send:
      return bytes;
    case CommunicationOp::receive:
    case CommunicationOp::barrier:
      return 0;
  }
  return 0;
}

void Traffic::record(const CommunicationCall& call) {
  TrafficCount& count = counts_[{call.group, call.op, call.dtype}];
  ++count.calls;
  count.payload_bytes += call.payload_bytes;
  count.wire_bytes += wire_bytes(call.op, call.payload_bytes, call.group_size);
  if (tracing_) calls_.push_back(call);
}

void Traffic::reset() {
  counts_.clear();
  calls_.clear();
}

TrafficCount Traffic::total(std::string_view group, CommunicationOp op) const {
  TrafficCount sum;
  for (const auto& [key, count] : counts_) {
    if (key.op != op || (!group.empty() && key.group != group)) continue;
    sum.calls += count.calls;
    sum.payload_bytes += count.payload_bytes;
    sum.wire_bytes += count.wire_bytes;
  }
  return sum;
}

}  // namespace runtime
