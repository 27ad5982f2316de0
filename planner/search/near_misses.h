// What memory keeps a plan from: of the candidates that do not fit and would be better, the one that lacks
// the least.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/search_result.h"

namespace planner {

class NearMisses {
 public:
  explicit NearMisses(const Pricer& pricer) : pricer_(pricer) {}

  /// Whether one that lacks what this price lacks and is no better than the objective is of no use.
  bool dominates(const Price& memory, double objective) const;
  void add(const PricedCandidate& candidate);
  std::optional<PricedCandidate> better_than(const Price& plan) const;

 private:
  /// The memory that is lacking as a share of what there is; 0 where it fits.
  double lacking(const Price& price) const;

  struct Miss {
    PricedCandidate candidate;
    double lacking = 0;
  };
  const Pricer& pricer_;
  std::vector<Miss> misses_;  ///< none is better than another and lacks less
};

}  // namespace planner
