// Is a placement legal for this model, cluster and recipe? Worked out from the rules alone, without the code
// that makes placements.
#pragma once

#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/cluster.h"
#include "specs/language/model.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"

namespace specs {

/// One broken rule.
struct PlacementViolation {
  std::string field;    ///< a path inside the placement, "stages/3/mesh/tensor"; empty for the whole
  std::string message;  ///< the failing equation with its numbers
  std::string remedy;   ///< the legal values
  bool operator==(const PlacementViolation&) const = default;
};

/// All broken rules; empty where the placement is legal. Memory and the software stack are not judged here.
/// The placement may be nonsense: nothing is assumed of it.
std::vector<PlacementViolation> placement_violations(const Placement& placement, const ModelSpec& model,
                                                     const ClusterSpec& cluster,
                                                     const TrainingSpec& training);

/// The same as diagnostics, all at `position`, each message led by its field.
Diagnostics check_placement(const Placement& placement, const ModelSpec& model, const ClusterSpec& cluster,
                            const TrainingSpec& training, const SourcePosition& position = {});

}  // namespace specs
