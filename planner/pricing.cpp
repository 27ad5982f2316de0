#include "planner/pricing.h"

namespace planner {

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()) {}

Price EstimatorPricer::price(const specs::RegularPlacement& placement) const {
  const cost_models::QuickCost quick = estimator_.quick(placement);
  Price price{quick.step_seconds, quick.step_seconds, quick.peak_device_bytes,
              quick.peak_host_bytes_per_node};
  switch (experiment_.search.objective) {
    case specs::Objective::step_time:
      break;
    case specs::Objective::goodput:
      price.objective = full_objective(placement);
      break;
    case specs::Objective::cost:
    case specs::Objective::energy: {
      const auto [rate, first] = objective_per_second_.try_emplace(placement.world_size());
      if (first) rate->second = full_objective(placement) / quick.step_seconds;
      price.objective = rate->second * quick.step_seconds;
      break;
    }
  }
  return price;
}

double EstimatorPricer::full_objective(const specs::RegularPlacement& placement) const {
  return objective_of(experiment_.search.objective, estimator_.estimate(specs::regular_placement(
                                                        placement, specs::block_count(experiment_.model))));
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
