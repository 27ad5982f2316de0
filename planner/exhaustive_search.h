// Prices every candidate of the space: the reference that other searches are held to.
//
// A candidate is better when its objective is smaller, then when its peak device memory is smaller, then when
// it comes earlier in the space's order; the result is therefore the same on every run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/legality.h"
#include "planner/pricing.h"
#include "planner/space.h"
#include "specs/plan/placement.h"

namespace planner {

struct PricedCandidate {
  specs::RegularPlacement placement;
  Price price;
  bool operator==(const PricedCandidate&) const = default;
};

/// The candidates of one mesh that break one memory constraint.
struct InfeasiblePart {
  Constraint constraint = Constraint::device_memory;
  std::uint64_t candidates = 0;
  PricedCandidate best;     ///< of them, by the objective
  PricedCandidate nearest;  ///< of them, by the bytes that are too many
};

/// One mesh: every candidate is either priced or in exactly one infeasible part (device memory is looked at
/// before host memory).
struct RegionResult {
  MeshDegrees mesh;
  std::uint64_t priced = 0;
  std::optional<PricedCandidate> best;
  std::vector<InfeasiblePart> infeasible;
};

struct SearchResult {
  std::vector<RegionResult> regions;  ///< one a mesh, in the space's order
  std::optional<PricedCandidate> best;
  std::vector<PricedCandidate> runners_up;  ///< the best candidates of the other meshes, at most ten
  bool complete = true;                     ///< false: stopped before all was priced

  std::uint64_t priced() const;
  std::uint64_t infeasible() const;
  /// Of all that do not fit: the one whose memory exceeds its limit by the fewest bytes.
  std::optional<PricedCandidate> nearest_infeasible(const Pricer& pricer) const;
  /// Of all that do not fit: the best by the objective.
  std::optional<PricedCandidate> best_infeasible() const;
};

inline constexpr std::size_t most_runners_up = 10;

bool is_better(const Price& price, const Price& than);

/// Stops between candidates once `*stop` is true.
SearchResult exhaustive_search(const Space& space, const Pricer& pricer,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace planner
