// The best candidates so far, one a mesh, and what a candidate must not exceed to matter.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "planner/search/search_result.h"

namespace planner {

class Incumbents {
 public:
  explicit Incumbents(std::size_t meshes) : best_(meshes) {}

  /// An objective above this is of no use in the mesh: above its own best, or above all that have a place.
  double threshold(std::size_t mesh) const {
    if (for_the_plan_alone_) return best_of_all();
    const double of_mesh =
        best_[mesh] ? best_[mesh]->price.objective : std::numeric_limits<double>::infinity();
    return of_mesh < last_ ? of_mesh : last_;
  }
  /// From here on only what is as good as the best candidate is of use.
  void ask_for_the_plan_alone() { for_the_plan_alone_ = true; }
  void offer(std::size_t mesh, const PricedCandidate& candidate);
  std::vector<PricedCandidate> best_of_meshes() const;

 private:
  double best_of_all() const {
    return leaders_.empty() ? std::numeric_limits<double>::infinity()
                            : best_[leaders_.front()]->price.objective;
  }

  std::vector<std::optional<PricedCandidate>> best_;
  std::vector<std::size_t> leaders_;  ///< meshes, the best first, at most one more than there are runners-up
  bool for_the_plan_alone_ = false;
  double last_ = std::numeric_limits<double>::infinity();  ///< of the last leader, where all places are taken
};

}  // namespace planner
