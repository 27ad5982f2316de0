// The certificate of a search, as it stands in the plan: regions that tile the space.
#pragma once

#include "planner/pricing/pricing.h"
#include "planner/search/search_result.h"
#include "specs/plan/plan.h"

namespace planner {

/// An infeasible region carries what its least member needs. An interrupted search leaves a gap unproven.
specs::Certificate certificate_of(const SearchResult& result, const Pricer& pricer);

/// "needs 96.2 GiB of 79.1 GiB a device", or the same of host memory.
std::string memory_equation(Constraint constraint, const Price& price, const Pricer& pricer);
std::string memory_equation(Constraint constraint, std::int64_t needed_bytes, std::int64_t usable_bytes);

/// Everything of a candidate but its mesh: "micro_batch=1 schedule=interleaved virtual_stages=6 …".
std::string describe_inside_mesh(const specs::RegularPlacement& placement);

}  // namespace planner
