// The objective P: what the search minimises, and whether a placement fits.
#pragma once

#include <cstdint>
#include <map>

#include "cost_models/estimate.h"
#include "specs/language/experiment.h"
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
  virtual Price price(const specs::RegularPlacement& placement) const = 0;
  virtual std::int64_t usable_device_bytes() const = 0;
  virtual std::int64_t usable_host_bytes() const = 0;

  bool fits_device(const Price& price) const { return price.peak_device_bytes <= usable_device_bytes(); }
  bool fits_host(const Price& price) const { return price.peak_host_bytes_per_node <= usable_host_bytes(); }
};

/// Step time comes from the estimator's quick form. Cost and energy are step time by a rate that the number
/// of devices fixes: the full account of the first placement of each world size gives it. Goodput needs the
/// full account of every placement, which is ten times slower. Not for several threads at once.
class EstimatorPricer : public Pricer {
 public:
  /// Keeps references.
  EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator);

  Price price(const specs::RegularPlacement& placement) const override;
  std::int64_t usable_device_bytes() const override { return usable_device_bytes_; }
  std::int64_t usable_host_bytes() const override { return usable_host_bytes_; }

 private:
  double full_objective(const specs::RegularPlacement& placement) const;

  const specs::Experiment& experiment_;
  const cost_models::Estimator& estimator_;
  std::int64_t usable_device_bytes_ = 0;
  std::int64_t usable_host_bytes_ = 0;
  mutable std::map<std::int64_t, double> objective_per_second_;  ///< by world size
};

/// The objective in its own unit, from a full account: seconds, dollars or joules per step; for goodput,
/// seconds per useful step.
double objective_of(specs::Objective objective, const specs::CostBreakdown& cost);

}  // namespace planner
