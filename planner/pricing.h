// The objective P: what the search minimises, and whether a placement fits.
//
// The search enumerates outer points: mesh, micro-batch, schedule, treatment (`RegularPlacement`). What an
// outer point leaves open (where stages are cut, how many layers each recomputes, module degrees) are its
// inner choices. A Pricer solves them: the search asks it for the price of the best inner choice, for how
// many there are, and, of the few outer points that end in the plan, for the placement itself.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "cost_models/estimate.h"
#include "planner/count.h"
#include "planner/inner_choice.h"
#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/cost_breakdown.h"
#include "specs/plan/placement.h"

namespace planner {

struct Price {
  double objective = 0;  ///< smaller is better; seconds, dollars or joules of a step
  double step_seconds = 0;
  std::int64_t peak_device_bytes = 0;
  std::int64_t peak_host_bytes_per_node = 0;
  bool operator==(const Price&) const = default;
};

/// What a search asks of the cost models; tests put their own behind it.
class Pricer {
 public:
  virtual ~Pricer() = default;
  /// Of the outer point's inner choices that fit: the best objective, ties to the smaller peak memory. Where
  /// none fits, a choice with the least device memory. Called for every outer point that no bound excludes.
  virtual Price price(const specs::RegularPlacement& outer) const = 0;
  /// Step time that no inner choice of the point goes below, with these offload shares or larger ones,
  /// whatever memory it needs.
  virtual double step_bound(const specs::RegularPlacement& outer) const = 0;
  /// Memory that every inner choice of the point needs; less with larger offload shares on the device, more
  /// on the host. Time is left at 0.
  virtual Price least_memory(const specs::RegularPlacement& outer) const = 0;
  /// The objective of a step of so many seconds; grows with them.
  virtual double objective(double step_seconds, std::int64_t world_size) const = 0;
  /// No inner choice of the points priced so far has a smaller objective; infinite where each price is that
  /// of a choice that is proven best.
  virtual double least_objective() const { return std::numeric_limits<double>::infinity(); }
  /// The inner choice that `price` is the price of.
  virtual specs::Placement placement(const specs::RegularPlacement& outer) const = 0;
  /// Inner choices of the outer point, exactly. Must not depend on offload shares or on the ZeRO treatment.
  virtual Count members(const specs::RegularPlacement& outer) const = 0;
  virtual std::int64_t usable_device_bytes() const = 0;
  virtual std::int64_t usable_host_bytes() const = 0;

  bool fits_device(const Price& price) const { return price.peak_device_bytes <= usable_device_bytes(); }
  bool fits_host(const Price& price) const { return price.peak_host_bytes_per_node <= usable_host_bytes(); }
};

/// One inner choice, layers cut as evenly as they go and all treated alike, in the estimator's quick form.
/// Where [search] recomputed_layers asks for stages treated each for itself: all of inner_choice.h. Not for
/// several threads at once.
class EstimatorPricer : public Pricer {
 public:
  /// Keeps references.
  EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator);
  /// On a stack that is not the catalog's.
  EstimatorPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                  const cost_models::Estimator& estimator);

  Price price(const specs::RegularPlacement& outer) const override;
  double step_bound(const specs::RegularPlacement& outer) const override;
  Price least_memory(const specs::RegularPlacement& outer) const override;
  double objective(double step_seconds, std::int64_t world_size) const override;
  specs::Placement placement(const specs::RegularPlacement& outer) const override;
  Count members(const specs::RegularPlacement& outer) const override;
  double least_objective() const override { return least_objective_; }
  std::int64_t usable_device_bytes() const override { return usable_device_bytes_; }
  std::int64_t usable_host_bytes() const override { return usable_host_bytes_; }

 private:
  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  std::int64_t usable_device_bytes_ = 0;
  std::int64_t usable_host_bytes_ = 0;
  std::optional<InnerChoices> inner_;  ///< where there are several
  mutable double least_objective_ = std::numeric_limits<double>::infinity();
};

/// Whether [search] asks for stages that are cut and recomputed each for itself.
bool treats_stages_for_themselves(const specs::SearchSpec& search);

/// The objective in its own unit, from a full account: seconds, dollars or joules per step; for goodput,
/// seconds per useful step.
double objective_of(specs::Objective objective, const specs::CostBreakdown& cost);

}  // namespace planner
