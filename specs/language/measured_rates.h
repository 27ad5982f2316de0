// Rates measured on a machine, beside the data-sheet rates of the catalog: what a probe writes and what the
// cost models prefer where it is present.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "specs/diagnostics/enum_names.h"
#include "specs/language/vocabulary.h"

namespace specs {

/// One square matrix product (m = n = k = size) on one device.
struct GemmRate {
  Precision precision = Precision::fp32;
  std::int64_t size = 0;
  double flops_per_second = 0;
  bool operator==(const GemmRate&) const = default;
};

enum class MeasuredCollective : std::uint8_t { all_reduce, all_gather, reduce_scatter, send_receive };

template <>
struct EnumNames<MeasuredCollective> {
  static constexpr std::array<std::pair<MeasuredCollective, std::string_view>, 4> names{{
      {MeasuredCollective::all_reduce, "all_reduce"},
      {MeasuredCollective::all_gather, "all_gather"},
      {MeasuredCollective::reduce_scatter, "reduce_scatter"},
      {MeasuredCollective::send_receive, "send_receive"},
  }};
};

/// seconds = latency_seconds + bytes / bytes_per_second, where `bytes` is the whole tensor: the result of an
/// all-gather, the input of a reduce-scatter, the message of a send. All ranks at once on one node.
struct CollectiveRate {
  MeasuredCollective collective = MeasuredCollective::all_reduce;
  std::int64_t ranks = 2;
  double latency_seconds = 0;
  double bytes_per_second = 0;
  bool operator==(const CollectiveRate&) const = default;
};

}  // namespace specs
