#include "planner/pricing/pricing.h"

#include <algorithm>

#include "planner/pricing/mixed_pricer.h"
#include "planner/space/group_layouts.h"
#include "specs/language/catalog.h"

namespace planner {

bool treats_stages_for_themselves(const specs::SearchSpec& search) {
  return !search.recomputed_layers.empty();
}

bool slower_in_larger_shares(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                             specs::OffloadDevice optimizer) {
  for (std::size_t group = 0; group < experiment.cluster.groups.size(); ++group)
    if (cost_models::host_updates_quicker(estimator.inputs(static_cast<std::int64_t>(group)), optimizer))
      return false;
  return true;
}

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()) {
  if (!treats_stages_for_themselves(experiment.search)) return;
  if (const auto stack = specs::stack_of(experiment.training); stack.ok())
    inner_.emplace(experiment, *stack, estimator);
}

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                 const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()) {
  if (treats_stages_for_themselves(experiment.search)) inner_.emplace(experiment, stack, estimator);
}

Price EstimatorPricer::price(const specs::RegularPlacement& outer) const {
  if (inner_) {
    const InnerChoice choice = inner_->best(outer);
    const cost_models::QuickCost& cost = choice.cost;
    Price price{objective(cost.step_seconds, outer.world_size()), cost.step_seconds, cost.peak_device_bytes,
                cost.peak_host_bytes_per_node};
    if (choice.least_step_seconds < cost.step_seconds && fits_device(price) && fits_host(price))
      price.gap = 1 - objective(choice.least_step_seconds, outer.world_size()) / price.objective;
    return price;
  }
  const cost_models::QuickCost quick = estimator_.quick(outer);
  return {objective(quick.step_seconds, outer.world_size()), quick.step_seconds, quick.peak_device_bytes,
          quick.peak_host_bytes_per_node};
}

double EstimatorPricer::step_bound(const specs::RegularPlacement& outer) const {
  if (inner_) return inner_->least_step_seconds(outer);
  return estimator_.quick_bound(outer);
}

bool EstimatorPricer::slower_in_larger_shares(specs::OffloadDevice optimizer) const {
  return planner::slower_in_larger_shares(experiment_, estimator_, optimizer);
}

Price EstimatorPricer::least_memory(const specs::RegularPlacement& outer) const {
  if (inner_) {
    const InnerChoices::Fits fits = inner_->any_fits(outer);
    return {0, 0, fits.device ? 0 : usable_device_bytes_ + 1, fits.host ? 0 : usable_host_bytes_ + 1};
  }
  const cost_models::QuickCost quick = estimator_.quick_memory(outer);
  return {0, 0, quick.peak_device_bytes, quick.peak_host_bytes_per_node};
}

double EstimatorPricer::objective(double step_seconds, std::int64_t world_size) const {
  return objective_of_step(experiment_.search.objective, estimator_, step_seconds, world_size);
}

specs::Placement EstimatorPricer::placement(const specs::RegularPlacement& outer) const {
  if (inner_) return inner_->best(outer).placement;
  return specs::regular_placement(outer, specs::block_count(experiment_.model));
}

Count EstimatorPricer::members(const specs::RegularPlacement& outer) const {
  return inner_ ? inner_->count(outer) : Count(1);
}

std::unique_ptr<Pricer> make_pricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                    const cost_models::Estimator& estimator) {
  if (is_mixed(experiment.cluster)) return std::make_unique<MixedPricer>(experiment, stack, estimator);
  return std::make_unique<EstimatorPricer>(experiment, stack, estimator);
}

double objective_of_step(specs::Objective objective, const cost_models::Estimator& estimator,
                         double step_seconds, std::int64_t world_size) {
  if (objective == specs::Objective::step_time) return step_seconds;
  const cost_models::JobFigures figures = estimator.job_figures(step_seconds, world_size);
  if (objective == specs::Objective::cost) return figures.cost_per_step_dollars;
  if (objective == specs::Objective::energy) return figures.energy_per_step_joules;
  return step_seconds / figures.goodput_fraction;
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
