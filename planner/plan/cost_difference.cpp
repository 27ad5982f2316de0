#include "planner/plan/cost_difference.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "planner/wording/quantity.h"

namespace planner {
namespace {

constexpr double least_share_of_step = 1e-6;
constexpr std::size_t most_terms_in_a_line = 3;

template <class Difference>
void sort_by_magnitude(std::vector<Difference>& differences) {
  std::stable_sort(differences.begin(), differences.end(), [](const Difference& a, const Difference& b) {
    return std::abs(a.change()) > std::abs(b.change());
  });
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "−" : "+") + format_seconds(std::abs(seconds));
}

}  // namespace

std::vector<TermDifference> time_differences(const specs::CostBreakdown& from,
                                             const specs::CostBreakdown& to) {
  std::vector<TermDifference> differences;
  const double least = least_share_of_step * std::max(from.step_seconds, to.step_seconds);
  for (const auto& [term, name] : specs::EnumNames<specs::TimeTerm>::names) {
    const TermDifference difference{term, from.exposed_seconds(term), to.exposed_seconds(term)};
    if (std::abs(difference.change()) > least) differences.push_back(difference);
  }
  sort_by_magnitude(differences);
  return differences;
}

std::int64_t fullest_pipeline_rank(const specs::CostBreakdown& cost) {
  std::int64_t fullest = 0, most = -1;
  for (const specs::MemoryEntry& entry : cost.memory) {
    if (entry.location != specs::MemoryLocation::device) continue;
    const std::int64_t bytes = cost.device_bytes(entry.pipeline_rank);
    if (bytes > most || (bytes == most && entry.pipeline_rank < fullest)) {
      most = bytes;
      fullest = entry.pipeline_rank;
    }
  }
  return fullest;
}

std::int64_t device_bytes(const specs::CostBreakdown& cost, std::int64_t pipeline_rank,
                          specs::MemoryClass memory_class) {
  std::int64_t bytes = 0;
  for (const specs::MemoryEntry& entry : cost.memory)
    if (entry.location == specs::MemoryLocation::device && entry.pipeline_rank == pipeline_rank &&
        entry.memory_class == memory_class)
      bytes += entry.bytes;
  return bytes;
}

std::vector<MemoryDifference> memory_differences(const specs::CostBreakdown& from,
                                                 const specs::CostBreakdown& to) {
  std::vector<MemoryDifference> differences;
  const std::int64_t from_rank = fullest_pipeline_rank(from), to_rank = fullest_pipeline_rank(to);
  for (const auto& [memory_class, name] : specs::EnumNames<specs::MemoryClass>::names) {
    const MemoryDifference difference{memory_class,
                                      static_cast<double>(device_bytes(from, from_rank, memory_class)),
                                      static_cast<double>(device_bytes(to, to_rank, memory_class))};
    if (difference.change() != 0) differences.push_back(difference);
  }
  sort_by_magnitude(differences);
  return differences;
}

std::string describe_trade(const specs::CostBreakdown& from, const specs::CostBreakdown& to) {
  const double slower = to.step_seconds / from.step_seconds - 1;
  std::string text = std::abs(slower) < 5e-4 ? "as fast"
                                             : fmt::format("{} {}", format_fraction(std::abs(slower)),
                                                           slower > 0 ? "slower" : "faster");
  const auto bytes = static_cast<double>(to.peak_device_bytes - from.peak_device_bytes);
  if (bytes != 0) text += fmt::format(", {} {}", format_bytes(std::abs(bytes)), bytes > 0 ? "more" : "less");
  const std::vector<TermDifference> terms = time_differences(from, to);
  for (std::size_t term = 0; term < std::min(terms.size(), most_terms_in_a_line); ++term)
    text += fmt::format("{}{} {}", term == 0 ? ": " : ", ", spoken_name(terms[term].term),
                        signed_seconds(terms[term].change()));
  return text;
}

}  // namespace planner
