// The sizes of the messages in which a software stack reduces gradients and gathers updated parameters, from
// its profile (specs/catalog/stacks) or from [training] where that names them.
#pragma once

#include "cost_models/stack_profile.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace cost_models {

/// Bytes of one element of a gradient between data-parallel ranks.
double reduction_bytes(const specs::TrainingSpec& training);

/// The catalog's profile of the stack, of the one that stands in for it, or of one with the same memory
/// rules.
specs::StackSpec catalog_profile(const StackProfile& profile);

/// Of the mesh of `placement`; zero, which is everything in one, where there is one replica or the stack does
/// so. A bucket of elements holds them as they travel: gradients in the reduction's precision, parameters as
/// the computation stores them. Per replica means each rank of the data and context axes.
specs::BucketSizes bucket_sizes(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                const specs::RegularPlacement& placement);

}  // namespace cost_models
