#include "planner/pricing/pricing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/pricing/mixed_pricer.h"
#include "planner/space/group_layouts.h"
#include "planner/space/placement_hash.h"

namespace planner {

bool slower_in_larger_shares(const specs::Experiment& experiment, const cost_models::Estimator& estimator,
                             specs::OffloadDevice optimizer) {
  for (std::size_t group = 0; group < experiment.cluster.groups.size(); ++group)
    if (cost_models::host_updates_quicker(estimator.inputs(static_cast<std::int64_t>(group)), optimizer))
      return false;
  return true;
}

std::optional<Price> Pricer::easy_price(const specs::RegularPlacement& outer, double enough) const {
  const Price memory = least_memory(outer);
  if (!fits_device(memory) || !fits_host(memory)) return std::nullopt;
  return solve(outer, enough, Effort::bound_alone).price;
}

EstimatorPricer::EstimatorPricer(const specs::Experiment& experiment, const specs::StackSpec& stack,
                                 const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      usable_device_bytes_(estimator.usable_device_bytes()),
      usable_host_bytes_(estimator.usable_host_bytes()),
      inner_(experiment, stack, estimator) {}

Price EstimatorPricer::as_price(const specs::RegularPlacement& outer,
                                const cost_models::QuickCost& cost) const {
  return {objective(cost.step_seconds, outer.world_size()), cost.step_seconds, cost.peak_device_bytes,
          cost.peak_host_bytes_per_node};
}

Price EstimatorPricer::price(const specs::RegularPlacement& outer) const {
  return *solve(outer, std::numeric_limits<double>::infinity(), Effort::whole).price;
}

Price EstimatorPricer::price_of_choice(const specs::RegularPlacement&, const specs::Placement& choice) const {
  const specs::CostBreakdown cost = estimator_.estimate(choice);
  return {objective_of(experiment_.search.objective, cost), cost.step_seconds, cost.peak_device_bytes,
          cost.peak_host_bytes_per_node};
}

Solved EstimatorPricer::solve(const specs::RegularPlacement& outer, double enough, Effort effort) const {
  const auto objective_at = [&](double seconds) { return objective(seconds, outer.world_size()); };
  const InnerChoice choice = inner_.best(
      outer, longest_step(experiment_.search.objective, estimator_, enough, outer.world_size()), effort);
  Solved solved;
  solved.least_objective = objective_at(choice.least_step_seconds);
  if (choice.given_up) return solved;
  remember(outer, choice);
  solved.price = as_price(outer, choice.cost);
  solved.bounds_all = choice.bounds_all;
  return solved;
}

double EstimatorPricer::step_bound(const specs::RegularPlacement& outer) const {
  return inner_.least_step_seconds(outer);
}

bool EstimatorPricer::surely_exceeds(const specs::RegularPlacement& outer, double objective) const {
  return inner_.take_longer(
      outer, longest_step(experiment_.search.objective, estimator_, objective, outer.world_size()));
}

std::optional<Price> EstimatorPricer::easy_price(const specs::RegularPlacement& outer, double) const {
  if (outer.recomputation != specs::Recomputation::none && !experiment_.search.recomputed_layers.empty())
    return std::nullopt;
  // The even cut, all layers treated alike.
  const cost_models::QuickCost memory = estimator_.quick_memory(outer);
  if (!estimator_.fits(memory)) return std::nullopt;
  InnerChoice even;
  even.cost = estimator_.quick(outer);
  remember(outer, even);
  return as_price(outer, even.cost);
}

bool EstimatorPricer::slower_in_larger_shares(specs::OffloadDevice optimizer) const {
  return planner::slower_in_larger_shares(experiment_, estimator_, optimizer);
}

Price EstimatorPricer::least_memory(const specs::RegularPlacement& outer) const {
  if (inner_.only_one(outer)) return memory_of_nearest(outer);
  const InnerChoices::Fits fits = inner_.any_fits(outer);
  return {0, 0, fits.device ? 0 : usable_device_bytes_ + 1, fits.host ? 0 : usable_host_bytes_ + 1};
}

Price EstimatorPricer::memory_of_nearest(const specs::RegularPlacement& outer) const {
  const cost_models::QuickCost quick = estimator_.quick_memory(outer);
  return {0, 0, quick.peak_device_bytes, quick.peak_host_bytes_per_node};
}

std::optional<Price> EstimatorPricer::memory_of_nearer(const specs::RegularPlacement& outer,
                                                       std::int64_t lacking_bytes) const {
  const std::optional<InnerChoice> choice = inner_.nearest(outer, lacking_bytes);
  if (!choice) return std::nullopt;
  remember(outer, *choice);
  return as_price(outer, choice->cost);
}

double EstimatorPricer::objective(double step_seconds, std::int64_t world_size) const {
  return objective_of_step(experiment_.search.objective, estimator_, step_seconds, world_size);
}

specs::Placement EstimatorPricer::placement(const specs::RegularPlacement& outer) const {
  if (const auto found = known_.find(hash_of(outer)); found != known_.end())
    for (const auto& [point, choice] : found->second)
      if (point == outer) return inner_.placement(outer, choice);
  return inner_.placement(outer, inner_.best(outer));
}

void EstimatorPricer::remember(const specs::RegularPlacement& outer, const InnerChoice& choice) const {
  if (inner_.only_one(outer)) return;
  auto& alike = known_[hash_of(outer)];
  for (auto& [point, known] : alike)
    if (point == outer) {
      if (choice.cost.step_seconds < known.cost.step_seconds) known = choice;
      return;
    }
  alike.emplace_back(outer, choice);
}

Count EstimatorPricer::members(const specs::RegularPlacement& outer) const { return inner_.count(outer); }

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

namespace {

/// Of goodput, which grows with the step, and by no less than in proportion where a checkpoint follows a
/// number of steps.
double step_of_goodput(const cost_models::Estimator& estimator, double value, std::int64_t world_size) {
  const auto goodput = [&](double seconds) {
    return objective_of_step(specs::Objective::goodput, estimator, seconds, world_size);
  };
  double high = value;  // every second is useful
  const double in_proportion = value / goodput(value) * value;
  constexpr double rounding = 1e-12;
  if (std::abs(goodput(in_proportion) - value) <= rounding * value) return in_proportion;
  double low = 0;
  while (high - low > rounding * high) {
    const double middle = (low + high) / 2;
    (goodput(middle) > value ? high : low) = middle;
  }
  return high;
}

}  // namespace

double longest_step(specs::Objective objective, const cost_models::Estimator& estimator, double value,
                    std::int64_t world_size) {
  constexpr double margin = 1e-9;
  if (std::isinf(value)) return value;
  const double of_a_second = objective_of_step(objective, estimator, 1, world_size);
  if (of_a_second <= 0) return std::numeric_limits<double>::infinity();  // nothing has a price
  const double seconds = objective == specs::Objective::goodput
                             ? step_of_goodput(estimator, value, world_size)
                             : value / of_a_second;
  return seconds * (1 + margin);
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
