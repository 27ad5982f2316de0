// What a search found, and the regions that prove it.
//
// A candidate is better when its objective is smaller, then when it keeps less in host memory, since what is
// offloaded for nothing only adds traffic, then when its peak device memory is smaller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/pricing/pricing.h"
#include "planner/space/count.h"
#include "planner/space/legality.h"
#include "specs/plan/placement.h"
#include "specs/plan/plan.h"

namespace planner {

struct PricedCandidate {
  specs::RegularPlacement placement;
  Price price;
  std::shared_ptr<const specs::Placement> choice;  ///< where it is not what `Pricer::placement` finds
  bool operator==(const PricedCandidate&) const = default;
};

inline constexpr std::size_t most_runners_up = 10;

bool is_better(const Price& price, const Price& than);

/// The memory constraint that the price breaks first, device memory before host memory, and by how many
/// bytes.
struct Excess {
  std::optional<Constraint> constraint;
  std::int64_t bytes = 0;
};
Excess excess_of(const Price& price, const Pricer& pricer);

/// A box of the space: a list of values for each named dimension, all values of the others. Of its members
/// that fit, none is below `objective`; under `infeasible` none fits.
struct Region {
  specs::RegionKind kind = specs::RegionKind::priced;
  std::string_view rule;  ///< the bound, or the constraint
  std::vector<specs::RegionDimension> dimensions;
  Count candidates;
  double objective = 0;           ///< priced: the best that fits; bounded: the bound
  std::int64_t needed_bytes = 0;  ///< infeasible: that every member needs at least
};

struct SearchResult {
  std::vector<Region> regions;  ///< they tile the space
  Count candidates, priced, infeasible, bounded;
  std::optional<PricedCandidate> best;
  std::vector<PricedCandidate> runners_up;  ///< the best candidates of the other meshes, at most ten
  /// Of those that do not fit and would be better, as far as they were looked at: the one that lacks the
  /// least memory, as a share of what there is.
  std::optional<PricedCandidate> near_miss;
  /// Where nothing fits: the one whose memory exceeds its limit by the fewest bytes.
  std::optional<PricedCandidate> nearest_infeasible;
  double lower_bound = 0;  ///< no member of the space that fits is below it
  bool complete = true;    ///< false: stopped before all was settled
  std::string_view method;

  /// The share of the best objective by which the optimum may be below it.
  double gap() const;
};

/// The best candidate and the best of each other mesh, from the best candidates of all meshes.
void choose_best(std::vector<PricedCandidate> best_of_meshes, SearchResult& result);

}  // namespace planner
