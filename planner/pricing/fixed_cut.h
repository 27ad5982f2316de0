// A cut that is given: what is left to choose is how many layers each rank recomputes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cost_models/estimate.h"
#include "planner/pricing/even_cut.h"
#include "planner/pricing/partition_problem.h"

namespace planner {

/// Raises the peaks to a rank's memory.
inline void note_memory(const cost_models::StagePricer::Bytes& bytes, cost_models::QuickCost& cost) {
  cost.peak_device_bytes = std::max(cost.peak_device_bytes, bytes.device);
  cost.peak_host_bytes_per_node = std::max(cost.peak_host_bytes_per_node, bytes.host_per_node);
}

class FixedCut {
 public:
  /// Keeps references.
  FixedCut(const cost_models::StagePricer& pricer, const EvenCut& cut);

  std::size_t ranks() const { return cut_.ranks().size(); }
  std::int64_t layers(std::size_t rank) const { return cut_.ranks()[rank].layers; }

  cost_models::StagePricer::Bytes memory(std::size_t rank, std::int64_t recomputed) const;

  /// Recomputed layers by rank: everything timed, nothing simulated.
  void set(const std::vector<std::int64_t>& recomputed);
  double bound() const { return pricer_.step_bound(stages_, ends_); }
  double step_seconds() const { return pricer_.step(stages_, ends_); }
  cost_models::QuickCost cost() const;
  std::vector<StagePart> parts() const;

 private:
  /// Made once for each kind of stage or rank and each number of recomputed layers.
  template <class Seconds>
  using Known = std::vector<std::vector<std::optional<Seconds>>>;

  const cost_models::StagePricer& pricer_;
  const EvenCut& cut_;
  Known<cost_models::StageSeconds> known_stages_;
  Known<cost_models::StepEndSeconds> known_ends_;
  std::vector<cost_models::StageSeconds> stages_;
  std::vector<cost_models::StepEndSeconds> ends_;
  std::vector<std::int64_t> recomputed_;
};

}  // namespace planner
