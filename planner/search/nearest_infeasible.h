// Where nothing fits: the candidate whose memory exceeds its limit by the fewest bytes.
#pragma once

#include <optional>

#include "cost_models/estimate.h"
#include "planner/pricing/pricing.h"
#include "planner/search/search_result.h"
#include "planner/space/space.h"

namespace planner {

/// Looks at the meshes in the order of what they need at least, each with every micro-batch, schedule and
/// treatment and every eighth of what may be offloaded, until no other can come nearer.
std::optional<PricedCandidate> nearest_infeasible(const specs::Experiment& experiment, const Space& space,
                                                  const cost_models::Estimator& estimator,
                                                  const Pricer& pricer);

}  // namespace planner
