// The exact search: bounds regions of the space from below, prices what no bound excludes.
//
// A region is a mesh with its axis order; inside it a micro-batch, a schedule, sequence parallelism,
// treatments of single modules, recomputation, a ZeRO treatment, and a box of offload shares. A region is
// settled without a look at its members where
//
// * its mesh cannot hold its share of the model in memory (infeasible);
// * its bound is above what is asked for (bounded);
// * the largest offload shares of a box still need too much device memory, or the smallest too much host
// memory
//   (infeasible: shares move bytes one way);
// * the smallest shares of a box, without regard to memory, are above what is asked for (bounded: shares only
//   add time).
//
// (Mesh, micro-batch) regions are opened in the order of their bounds (lower_bounds.h), three times:
//
// 1. what keeps everything on the device is priced: a start to beat;
// 2. all is settled, asking for the best candidate and the best of ten other meshes: inside a mesh its own
// best
//    counts, for other meshes the tenth best;
// 3. all is settled and written down, asking for the plan alone, whose proof this is. Nothing is priced
// again.
//
// Nothing is cut off at equality, so that ties are settled by memory; of offload shares that cost no time,
// the smallest are taken.
#pragma once

#include <atomic>

#include "cost_models/estimate.h"
#include "planner/pricing/pricing.h"
#include "planner/search/search_result.h"
#include "planner/space/space.h"

namespace planner {

inline constexpr std::string_view branch_and_bound_method = "branch-and-bound";

/// Whether a search that finds nothing looks for what lacks least memory.
enum class WhereNothingFits { names_the_nearest, says_no_more };

/// Stops between regions once `*stop` is true; what is not settled then is bounded by what was known.
SearchResult branch_and_bound(const specs::Experiment& experiment, const Space& space,
                              const cost_models::Estimator& estimator, const Pricer& pricer,
                              const std::atomic<bool>* stop = nullptr,
                              WhereNothingFits where_nothing_fits = WhereNothingFits::names_the_nearest);

}  // namespace planner
