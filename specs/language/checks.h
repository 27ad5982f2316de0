// Contradictions between values that are each in range: the whole equation in the message, the legal values
// as the remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/language/key_reader.h"

namespace specs {

/// Reports at the first of several keys that was given. Where one of them could not be read, nothing is
/// reported: the error would follow from the one that was.
class CheckReport {
 public:
  CheckReport(const KeyPositions& positions, Diagnostics& diagnostics)
      : positions_(positions), diagnostics_(diagnostics) {}

  void error(const std::vector<std::string>& paths, std::string message, std::string remedy = {});
  void warning(const std::vector<std::string>& paths, std::string message, std::string remedy = {});
  bool given(const std::string& path) const { return positions_.given(path); }

 private:
  void add(Severity severity, const std::vector<std::string>& paths, std::string message, std::string remedy);

  const KeyPositions& positions_;
  Diagnostics& diagnostics_;
};

/// Far above any model; below it no product of sizes leaves 64 bits.
inline constexpr double most_parameters = 1e16;

/// The order of magnitude, for that bound only: cost_models counts exactly.
double rough_parameters(const ModelSpec& model);

void check_model(const ModelSpec& model, CheckReport& report);
void check_cluster(const ClusterSpec& cluster, CheckReport& report);
void check_training(const Experiment& experiment, CheckReport& report);
void check_search(const Experiment& experiment, CheckReport& report);

/// "1, 2, 4, 8": the divisors of a positive number; the first few and the last where they are many.
std::string divisors_text(std::int64_t number);

}  // namespace specs
