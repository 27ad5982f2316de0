// Holds a plan's claims against code of its own: nothing here is shared with the search, its space or its
// rules.
//
// The members of every region are written out anew from the model, the cluster, the recipe, the stack's
// profile and [search]; legality is judged by specs/plan/placement_check; prices come from the full account
// of `Estimator::estimate`, never from the search's quick form.
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
  std::int64_t counted_candidates = 0;  ///< by this code
  std::int64_t priced_members = 0;
  std::vector<VerifyFinding> findings;  ///< claims that do not hold
  bool holds() const { return findings.empty(); }
};

/// Checks that the plan's price and memory are what the full account says, that the counts of the regions add
/// up to the space and to what this code counts, that the meshes of the regions are all there are and each
/// once, and of sampled members, half of them near the plan, that none that fits beats the plan by more than
/// the claimed gap and that those of a region without a fitting member do not fit. Errors: a certificate of a
/// method that this code does not know.
specs::Result<Verification> verify_certificate(const specs::Plan& plan, const VerifyOptions& options = {});

}  // namespace planner
