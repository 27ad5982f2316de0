#include "planner/pricing.h"

namespace planner {

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()) {}

Price EstimatorPricer::price(const specs::RegularPlacement& outer) const {
  const cost_models::QuickCost quick = estimator_.quick(outer);
  return {objective(quick.step_seconds, outer.world_size()), quick.step_seconds, quick.peak_device_bytes,
          quick.peak_host_bytes_per_node};
}

double EstimatorPricer::step_bound(const specs::RegularPlacement& outer) const {
  return estimator_.quick_bound(outer);
}

Price EstimatorPricer::least_memory(const specs::RegularPlacement& outer) const {
  const cost_models::QuickCost quick = estimator_.quick_memory(outer);
  return {0, 0, quick.peak_device_bytes, quick.peak_host_bytes_per_node};
}

double EstimatorPricer::objective(double step_seconds, std::int64_t world_size) const {
  const specs::Objective wanted = experiment_.search.objective;
  if (wanted == specs::Objective::step_time) return step_seconds;
  const cost_models::JobFigures figures = estimator_.job_figures(step_seconds, world_size);
  if (wanted == specs::Objective::cost) return figures.cost_per_step_dollars;
  if (wanted == specs::Objective::energy) return figures.energy_per_step_joules;
  return step_seconds / figures.goodput_fraction;
}

specs::Placement EstimatorPricer::placement(const specs::RegularPlacement& outer) const {
  return specs::regular_placement(outer, specs::block_count(experiment_.model));
}

// One choice: layers cut as evenly as they go, all treated alike.
Count EstimatorPricer::members(const specs::RegularPlacement&) const { return 1; }

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
