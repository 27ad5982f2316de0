// The certificate of a search, as it stands in the plan: regions that tile the space.
#pragma once

#include "planner/exhaustive_search.h"
#include "planner/pricing.h"
#include "planner/space.h"
#include "specs/plan/plan.h"

namespace planner {

/// One region for the priced candidates of each mesh, one for those that break each memory constraint; an
/// infeasible region carries the equation of its best member. An interrupted search leaves a gap unproven.
specs::Certificate certificate_of(const Space& space, const SearchResult& result, const Pricer& pricer);

/// "needs 96.2 GiB of 79.1 GiB a device", or the same of host memory.
std::string memory_equation(Constraint constraint, const Price& price, const Pricer& pricer);

/// Everything of a candidate but its mesh: "micro_batch=1 schedule=interleaved virtual_stages=6 …".
std::string describe_inside_mesh(const specs::RegularPlacement& placement);

}  // namespace planner
