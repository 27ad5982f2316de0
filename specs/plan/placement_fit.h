// The part of the placement check that looks at the model and the recipe.
#pragma once

#include "specs/language/model.h"
#include "specs/language/training.h"
#include "specs/plan/placement.h"
#include "specs/plan/placement_violation_list.h"

namespace specs {

/// Heads, widths, experts, sequence and batch against the degrees of every stage, which are at least 1.
void check_fit(const Placement& placement, const ModelSpec& model, const TrainingSpec& training,
               PlacementViolationList& list);

}  // namespace specs
