// The objective P: what the search minimises, and whether a placement fits.
//
// The search enumerates outer points: mesh, micro-batch, schedule, treatment (`RegularPlacement`). What an
// outer point leaves open (where stages are cut, how many layers each recomputes, module degrees) are its
// inner choices. A Pricer solves them: the search asks it for the price of the best inner choice, for how
// many there are, and, of the few outer points that end in the plan, for the placement itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cost_models/estimate.h"
#include "planner/pricing/inner_choice.h"
#include "planner/space/count.h"
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
  double gap = 0;  ///< share of the objective by which another inner choice that fits may be better
  bool operator==(const Price&) const = default;
};

/// What a search asks of the cost models; tests put their own behind it.
class Pricer {
 public:
  virtual ~Pricer() = default;
  /// Of the outer point's inner choices that fit: the best objective, ties to the smaller peak memory. Where
  /// none fits, a choice with the least device memory. Called for every outer point that no bound excludes.
  virtual Price price(const specs::RegularPlacement& outer) const = 0;
  /// Step time that no inner choice of the point goes below, whatever memory it needs, with these offload
  /// shares or larger ones; of the optimizer's, where they are `slower_in_larger_shares`.
  virtual double step_bound(const specs::RegularPlacement& outer) const = 0;
  /// Whether a step never gets shorter by a larger share of the optimizer on this device, updated in time.
  virtual bool slower_in_larger_shares(specs::OffloadDevice /*optimizer*/) const { return true; }
  /// Whether an inner choice of the point that fits may be as good as this objective; asked before its price.
  virtual bool may_reach(const specs::RegularPlacement&, double /*objective*/) const { return true; }
  /// Memory that every inner choice of the point needs; less with larger offload shares on the device, more
  /// on the host. Time is left at 0.
  virtual Price least_memory(const specs::RegularPlacement& outer) const = 0;
  /// Where no inner choice fits: the memory of one that lacks little.
  virtual Price memory_of_nearest(const specs::RegularPlacement& outer) const { return least_memory(outer); }
  /// The objective of a step of so many seconds; grows with them.
  virtual double objective(double step_seconds, std::int64_t world_size) const = 0;
  /// The inner choice that `price` is the price of.
  virtual specs::Placement placement(const specs::RegularPlacement& outer) const = 0;
  /// Inner choices of the outer point, exactly. Must not depend on offload shares or on the ZeRO treatment;
  /// on the data degree and the micro-batch only where `members_follow_shares`.
  virtual Count members(const specs::RegularPlacement& outer) const = 0;
  virtual bool members_follow_shares() const { return false; }
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
  bool slower_in_larger_shares(specs::OffloadDevice optimizer) const override;
  Price least_memory(const specs::RegularPlacement& outer) const override;
  double objective(double step_seconds, std::int64_t world_size) const override;
  specs::Placement placement(const specs::RegularPlacement& outer) const override;
  Count members(const specs::RegularPlacement& outer) const override;
  std::int64_t usable_device_bytes() const override { return usable_device_bytes_; }
  std::int64_t usable_host_bytes() const override { return usable_host_bytes_; }

 private:
  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  std::int64_t usable_device_bytes_ = 0;
  std::int64_t usable_host_bytes_ = 0;
  std::optional<InnerChoices> inner_;  ///< where there are several
};

/// Whether [search] asks for stages that are cut and recomputed each for itself.
bool treats_stages_for_themselves(const specs::SearchSpec& search);

/// Whether no kind of device of the experiment has its parameters updated in less time by this one.
bool slower_in_larger_shares(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                             specs::OffloadDevice optimizer);

/// What prices the experiment: EstimatorPricer, or MixedPricer (mixed_pricer.h) for several kinds of nodes.
/// Keeps references to the experiment and the estimator.
std::unique_ptr<Pricer> make_pricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                    const cost_models::Estimator& estimator);

/// The objective of a step of so many seconds on so many devices.
double objective_of_step(specs::Objective objective, const cost_models::Estimator& estimator,
                         double step_seconds, std::int64_t world_size);

/// The objective in its own unit, from a full account: seconds, dollars or joules per step; for goodput,
/// seconds per useful step.
double objective_of(specs::Objective objective, const specs::CostBreakdown& cost);

}  // namespace planner
