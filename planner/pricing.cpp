#include "planner/pricing.h"

namespace planner {

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()) {}

Price EstimatorPricer::price(const specs::RegularPlacement& outer) const {
  const cost_models::QuickCost quick = estimator_.quick(outer);
  Price price{quick.step_seconds, quick.step_seconds, quick.peak_device_bytes,
              quick.peak_host_bytes_per_node};
  switch (experiment_.search.objective) {
    case specs::Objective::step_time:
      break;
    case specs::Objective::goodput:
      price.objective = full_objective(outer);
      break;
    case specs::Objective::cost:
    case specs::Objective::energy: {
      const auto [rate, first] = objective_per_second_.try_emplace(outer.world_size());
      if (first) rate->second = full_objective(outer) / quick.step_seconds;
      price.objective = rate->second * quick.step_seconds;
      break;
    }
  }
  return price;
}

specs::Placement EstimatorPricer::placement(const specs::RegularPlacement& outer) const {
  return specs::regular_placement(outer, specs::block_count(experiment_.model));
}

// One choice: layers cut as evenly as they go, all treated alike.
Count EstimatorPricer::members(const specs::RegularPlacement&) const { return 1; }

double EstimatorPricer::full_objective(const specs::RegularPlacement& outer) const {
  return objective_of(experiment_.search.objective, estimator_.estimate(placement(outer)));
}

double objective_of(specs::Objective objective, const specs::CostBreakdown& cost) {
  switch (objective) {
    case specs::Objective::cost:
      return cost.cost_per_step_dollars;
    case specs::Objective::energy:
      return cost.energy_per_step_joules;
    case specs::Objective::goodput:
      return cost.step_seconds / cost.goodput_fraction;
    case specs::Objective::step_time:
      return cost.step_seconds;
  }
  return cost.step_seconds;
}

}  // namespace planner
