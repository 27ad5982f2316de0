// The inner choices of an outer point: where stages are cut, and how many layers of each are recomputed.
//
// Cuts are free where [search] uneven_stages and the stack allow it and a rank holds one stage: each stage
// holds at least one attention or FFN, the first the embedding, the last the output layer; cuts fall between
// an attention and its FFN where [search] cuts_inside_layers and the stack allow that, else between layers.
// Otherwise layers are cut as evenly as they go. With recomputation the number of recomputed layers of each
// stage (of each rank, alike in all its stages, where it holds several) is free from none to all, or one of
// [search] recomputed_layers; recomputing nowhere is the choice of `recomputation = none` and not repeated.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "cost_models/estimate.h"
#include "planner/space/count.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

/// The best inner choice; where none fits, the one that all layers recomputed and an even cut make.
struct InnerChoice {
  specs::Placement placement;
  cost_models::QuickCost cost;
  double least_step_seconds = 0;  ///< no inner choice takes less; equals the cost's where that is proven best
};

class InnerChoices {
 public:
  /// Keeps references.
  InnerChoices(const specs::Experiment& experiment, const specs::StackSpec& stack,
               const cost_models::Estimator& estimator);

  InnerChoice best(const specs::RegularPlacement& outer) const;

  /// How many there are, exactly.
  Count count(const specs::RegularPlacement& outer) const;

  /// Whether any choice fits the devices, were host memory unlimited, and the other way round.
  struct Fits {
    bool device = true;
    bool host = true;
  };
  Fits any_fits(const specs::RegularPlacement& outer) const;

  /// No choice takes less, whatever memory it needs: all micro-batches' work, shared evenly by the ranks.
  double least_step_seconds(const specs::RegularPlacement& outer) const;

  bool cuts_are_free(const specs::RegularPlacement& outer) const;
  bool cuts_fall_inside_layers() const { return inside_layers_; }

 private:
  /// Nothing where no cut fits.
  std::optional<InnerChoice> best_cut(const specs::RegularPlacement& outer) const;
  InnerChoice best_of_even_cut(const specs::RegularPlacement& outer) const;
  bool any_fits(const specs::RegularPlacement& outer, std::int64_t device_bytes,
                std::int64_t host_bytes) const;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  bool uneven_ = false;
  bool inside_layers_ = false;
  std::int64_t blocks_ = 0;
  mutable std::map<std::tuple<std::int64_t, std::int64_t, bool>, Count> counts_;
};

}  // namespace planner
