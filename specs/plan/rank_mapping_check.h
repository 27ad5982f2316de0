// Does a rank mapping put every rank on a device of its own, in the group its stage asks for?
#pragma once

#include <string>
#include <vector>

#include "specs/language/cluster.h"
#include "specs/plan/placement.h"
#include "specs/plan/plan.h"

namespace specs {

struct RankMappingViolation {
  std::string field;  ///< "/ranges/0"; empty for the whole
  std::string message;
  bool operator==(const RankMappingViolation&) const = default;
};

/// Requires a placement without violations. Works the devices out by itself.
std::vector<RankMappingViolation> rank_mapping_violations(const RankMapping& mapping,
                                                          const Placement& placement,
                                                          const ClusterSpec& cluster);

}  // namespace specs
