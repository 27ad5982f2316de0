// Published memory measurements beside what the memory model says.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace published {

struct MemoryPoint {
  std::string id;
  std::string family;
  std::string kind;      ///< "peak_allocated", "peak_reserved", "nvidia_smi", "oom"
  std::string identity;  ///< equal for configurations that differ only in accumulation
  double measured_gib = 0;
  double predicted_gib = 0;  ///< of the worst rank, in the sense of the kind
  double total_gib = 0;      ///< of the worst rank, everything counted
  double usable_gib = 0;     ///< what the device leaves to the job
  std::vector<double> allocated_mib_by_stage;
  bool out_of_memory() const { return kind == "oom"; }
  bool fits() const { return total_gib <= usable_gib; }
};

struct MemorySet {
  std::vector<MemoryPoint> points;
  std::vector<std::pair<std::string, std::string>> unpriced;  ///< row id and reason
};

/// Rows of confidence a or b that miss no input but a time.
MemorySet read_memory_points(const std::filesystem::path& path);

struct RankError {
  std::string id;
  int rank = 0;
  double error = 0;  ///< predicted / measured − 1 of the peak allocated bytes
};

/// Every rank of the file whose id is among the points; configurations that differ only in accumulation count
/// once.
std::vector<RankError> rank_errors(const std::filesystem::path& by_rank, const MemorySet& set);

}  // namespace published
