// Holds a plan's claims against code of its own: nothing here is shared with the search, its space, its rules
// or its bounds.
//
// The members of every region are written out anew from the model, the cluster, the recipe, the stack's
// profile and [search]; prices come from the full account of `Estimator::estimate`, never from the search's
// quick forms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/plan/plan.h"

namespace planner {

struct VerifyOptions {
  std::int64_t samples_per_region = 200;  ///< members priced; a region with fewer is priced whole
  std::uint64_t seed = 1;
};

struct VerifyFinding {
  std::string region;  ///< empty for the plan as a whole
  std::string message;
  bool operator==(const VerifyFinding&) const = default;
};

struct Verification {
  std::int64_t regions = 0;
  std::string counted_candidates;  ///< by this code, a decimal integer
  std::int64_t priced_members = 0;
  bool complete = true;                 ///< the search had ended: else the gap alone is claimed
  double gap_fraction = 0;              ///< by which another placement may be better
  std::vector<VerifyFinding> findings;  ///< claims that do not hold
  bool holds() const { return findings.empty(); }
};

/// Checks that
///  * the plan's prediction and the runners-up's figures are what the full account says, the plan fits, and
///  no
///    runner-up is better;
///  * each region holds as many members as it says, and together they hold the space, counted anew;
///  * no drawn member lies in a second region;
///  * of the drawn members of a region (all of a small one; else half of them at random, half of them local
///  moves
///    from the plan and its runners-up) none is below a bounded region's bound or a priced region's best, and
///    each of an infeasible region breaks the named constraint; a priced region that is priced whole has the
///    best it says;
///  * no bound and no best lies below the plan by more than the claimed gap.
/// Errors: a certificate of a method that this code does not know.
specs::Result<Verification> verify_certificate(const specs::Plan& plan, const VerifyOptions& options = {});

}  // namespace planner
