// The objective P: what the search minimises, and whether a placement fits.
//
// The search enumerates outer points: mesh, micro-batch, schedule, treatment (`RegularPlacement`). What an
// outer point leaves open (where stages are cut, how many layers each recomputes, module degrees) are its
// inner choices. A Pricer solves them: the search asks it for the price of the best inner choice, for how
// many there are, and, of the few outer points that end in the plan, for the placement itself.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

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
  bool operator==(const Price&) const = default;
};

/// What is known of an outer point's inner choices.
struct Solved {
  std::optional<Price> price;  ///< of the best that fits (`Pricer::price`); nothing where it is of no use
  double least_objective = 0;  ///< no choice that fits is below
  bool bounds_all = false;     ///< nor is any that does not fit
};

/// What a search asks of the cost models; tests put their own behind it.
class Pricer {
 public:
  virtual ~Pricer() = default;
  /// Of the outer point's inner choices that fit: the best objective, ties to the smaller peak memory. Where
  /// none fits, a choice with the least device memory. Called for every outer point that no bound excludes.
  virtual Price price(const specs::RegularPlacement& outer) const = 0;
  /// Of one inner choice.
  virtual Price price_of_choice(const specs::RegularPlacement& outer,
                                const specs::Placement& /*choice*/) const {
    return price(outer);
  }
  /// `price`, where what is above `enough` need not be found out.
  virtual Solved solve(const specs::RegularPlacement& outer, double /*enough*/, Effort /*effort*/) const {
    const Price found = price(outer);
    return {found, found.objective, members(outer) == 1};
  }
  /// Step time that no inner choice of the point goes below, whatever memory it needs, with these offload
  /// shares or larger ones; of the optimizer's, where they are `slower_in_larger_shares`.
  virtual double step_bound(const specs::RegularPlacement& outer) const = 0;
  /// Whether a step never gets shorter by a larger share of the optimizer on this device, updated in time.
  virtual bool slower_in_larger_shares(specs::OffloadDevice /*optimizer*/) const { return true; }
  /// Whether all that `step_bound` speaks of is surely above this objective: closer, and dearer.
  virtual bool surely_exceeds(const specs::RegularPlacement&, double /*objective*/) const { return false; }
  /// The price of some inner choice that is found quickly and may be up to `enough`; nothing where none is at
  /// hand.
  virtual std::optional<Price> easy_price(const specs::RegularPlacement& outer, double enough) const;
  /// Memory that every inner choice of the point needs; less with larger offload shares on the device, more
  /// on the host. Time is left at 0.
  virtual Price least_memory(const specs::RegularPlacement& outer) const = 0;
  /// Where no inner choice fits: the memory of one that lacks little.
  virtual Price memory_of_nearest(const specs::RegularPlacement& outer) const { return least_memory(outer); }
  /// Where no inner choice fits: the memory of the one that lacks least, if that is less than so many bytes;
  /// `placement` is it from then on.
  virtual std::optional<Price> memory_of_nearer(const specs::RegularPlacement& /*outer*/,
                                                std::int64_t /*lacking_bytes*/) const {
    return std::nullopt;
  }
  /// The objective of a step of so many seconds; grows with them.
  virtual double objective(double step_seconds, std::int64_t world_size) const = 0;
  /// The best inner choice that was found so far; where none was, the one that `price` is the price of.
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

/// All inner choices of inner_choice.h, in the estimator's quick form. Not for several threads at once.
class EstimatorPricer : public Pricer {
 public:
  /// Keeps references to the experiment and the estimator.
  EstimatorPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                  const cost_models::Estimator& estimator);

  Price price(const specs::RegularPlacement& outer) const override;
  Price price_of_choice(const specs::RegularPlacement& outer, const specs::Placement& choice) const override;
  Solved solve(const specs::RegularPlacement& outer, double enough, Effort effort) const override;
  double step_bound(const specs::RegularPlacement& outer) const override;
  bool slower_in_larger_shares(specs::OffloadDevice optimizer) const override;
  bool surely_exceeds(const specs::RegularPlacement& outer, double objective) const override;
  std::optional<Price> easy_price(const specs::RegularPlacement& outer, double enough) const override;
  Price least_memory(const specs::RegularPlacement& outer) const override;
  Price memory_of_nearest(const specs::RegularPlacement& outer) const override;
  std::optional<Price> memory_of_nearer(const specs::RegularPlacement& outer,
                                        std::int64_t lacking_bytes) const override;
  double objective(double step_seconds, std::int64_t world_size) const override;
  specs::Placement placement(const specs::RegularPlacement& outer) const override;
  Count members(const specs::RegularPlacement& outer) const override;
  std::int64_t usable_device_bytes() const override { return usable_device_bytes_; }
  std::int64_t usable_host_bytes() const override { return usable_host_bytes_; }

 private:
  Price as_price(const specs::RegularPlacement& outer, const cost_models::QuickCost& cost) const;
  void remember(const specs::RegularPlacement& outer, const InnerChoice& choice) const;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  std::int64_t usable_device_bytes_ = 0;
  std::int64_t usable_host_bytes_ = 0;
  const InnerChoices inner_;
  /// The best choice of a point so far, by hash.
  mutable std::unordered_map<std::size_t, std::vector<std::pair<specs::RegularPlacement, InnerChoice>>>
      known_;
};

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

/// No step that is longer has such an objective, with what rounding may part them by.
double longest_step(specs::Objective objective, const cost_models::Estimator& estimator, double value,
                    std::int64_t world_size);

/// The objective in its own unit, from a full account: seconds, dollars or joules per step; for goodput,
/// seconds per useful step.
double objective_of(specs::Objective objective, const specs::CostBreakdown& cost);

}  // namespace planner
