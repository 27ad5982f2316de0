// What two prices differ in, term by term.
#pragma once

#include <string>
#include <vector>

#include "specs/plan/cost_breakdown.h"

namespace planner {

struct TermDifference {
  specs::TimeTerm term = specs::TimeTerm::fixed_overhead;
  double from_seconds = 0;
  double to_seconds = 0;
  double change() const { return to_seconds - from_seconds; }
};

struct MemoryDifference {
  specs::MemoryClass memory_class = specs::MemoryClass::parameters;
  double from_bytes = 0;  ///< on the pipeline rank that needs most
  double to_bytes = 0;
  double change() const { return to_bytes - from_bytes; }
};

/// Terms that differ by more than a millionth of the step, the largest change first. Their changes add up to
/// the difference of the step times, to rounding.
std::vector<TermDifference> time_differences(const specs::CostBreakdown& from,
                                             const specs::CostBreakdown& to);

/// Classes that differ on the fullest pipeline rank of each, the largest change first.
std::vector<MemoryDifference> memory_differences(const specs::CostBreakdown& from,
                                                 const specs::CostBreakdown& to);

/// The pipeline rank with the most device memory, the first of equals.
std::int64_t fullest_pipeline_rank(const specs::CostBreakdown& cost);

/// Bytes of one class in device memory on a pipeline rank.
std::int64_t device_bytes(const specs::CostBreakdown& cost, std::int64_t pipeline_rank,
                          specs::MemoryClass memory_class);

/// One line: "3.2 % slower, 8.1 GiB less: pipeline bubble +0.8 s, tensor communication −0.3 s".
std::string describe_trade(const specs::CostBreakdown& from, const specs::CostBreakdown& to);

/// "pipeline bubble" for pipeline_bubble.
template <class Enum>
std::string spoken_name(Enum value) {
  std::string name(specs::name_of(value));
  for (char& letter : name)
    if (letter == '_') letter = ' ';
  return name;
}

}  // namespace planner
