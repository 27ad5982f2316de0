// Treatments of single module kinds (attention, FFN, embedding, output layer) laid over a placement.
#pragma once

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/search.h"
#include "specs/plan/placement.h"

namespace planner {

/// True where [search] restricts a module's tensor degree or the output layer's mode.
bool restricts_modules(const specs::SearchSpec& search);

/// `search` without those restrictions.
specs::SearchSpec without_module_restrictions(specs::SearchSpec search);

/// The placement with the one treatment that [search] leaves each module kind, in all its stages; degrees
/// that equal the stage's become 0, the canonical form. Errors: a restriction that leaves several values.
specs::Result<specs::Placement> with_module_treatments(specs::Placement placement,
                                                       const specs::SearchSpec& search);

/// The placement with each cut that falls before an attention moved behind it, so that stages begin with an
/// FFN.
specs::Placement with_cuts_before_feed_forwards(specs::Placement placement, std::int64_t layers);

}  // namespace planner
