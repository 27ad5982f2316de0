#include "planner/plan/plan_experiment.h"

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "planner/certificate/certificate.h"
#include "planner/plan/cost_difference.h"
#include "planner/plan/plan_assembly.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/search/exhaustive_search.h"
#include "planner/space/group_layouts.h"
#include "planner/space/illegality.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

void add_runners_up(const SearchResult& result, const Pricer& pricer, const cost_models::Estimator& estimator,
                    specs::Plan& plan) {
  for (const PricedCandidate& candidate : result.runners_up) {
    specs::RunnerUp runner_up;
    runner_up.placement = pricer.placement(candidate.placement);
    runner_up.objective = candidate.price.objective;
    runner_up.step_seconds = candidate.price.step_seconds;
    const specs::CostBreakdown cost = estimator.estimate(runner_up.placement);
    runner_up.peak_device_bytes = cost.peak_device_bytes;
    runner_up.cost_per_step_dollars = cost.cost_per_step_dollars;
    runner_up.energy_per_step_joules = cost.energy_per_step_joules;
    runner_up.trade = describe_trade(plan.prediction, cost);
    plan.runners_up.push_back(std::move(runner_up));
  }
}

/// What memory keeps the plan from: the best placement that would be better and does not fit.
void add_binding_constraint(const SearchResult& result, const Pricer& pricer, specs::Plan& plan) {
  const std::optional<PricedCandidate>& better = result.best_infeasible;
  if (!better || !is_better(better->price, result.best->price)) return;
  const Constraint constraint =
      pricer.fits_device(better->price) ? Constraint::host_memory : Constraint::device_memory;
  plan.advice.insert(
      plan.advice.begin(),
      {"binding-memory",
       fmt::format("{} {} would take {} a step ({})", describe(mesh_of(better->placement)),
                   describe_inside_mesh(better->placement), format_seconds(better->price.step_seconds),
                   format_signed_fraction(better->price.step_seconds / result.best->price.step_seconds - 1)),
       memory_equation(constraint, better->price, pricer)});
}

Infeasibility infeasibility_of(const specs::Experiment& experiment, const specs::StackSpec& stack,
                               const Space& space, const SearchResult& result, const Pricer& pricer) {
  Infeasibility infeasibility;
  infeasibility.candidates = result.candidates;
  if (space.meshes().empty()) {
    infeasibility.reasons = reasons_for_empty_space(experiment, stack, space);
  } else if ((infeasibility.nearest = result.nearest_infeasible)) {
    const Price& price = infeasibility.nearest->price;
    const bool device = !pricer.fits_device(price);
    const std::int64_t excess = device ? price.peak_device_bytes - pricer.usable_device_bytes()
                                       : price.peak_host_bytes_per_node - pricer.usable_host_bytes();
    infeasibility.reasons.push_back(fmt::format(
        "{}: {} more a {}",
        memory_equation(device ? Constraint::device_memory : Constraint::host_memory, price, pricer),
        format_bytes(static_cast<double>(excess)), device ? "device" : "node"));
  }
  infeasibility.remedies = remedies_for(experiment);
  return infeasibility;
}

}  // namespace

namespace {

specs::Diagnostics unsearchable(const specs::SearchSpec& search) {
  specs::Diagnostics diagnostics;
  // Dimensions that have only their neutral value in the space: a restriction to anything else would be
  // ignored.
  const auto neutral_alone = [&](std::string_view name, const auto& restriction, const auto& neutral) {
    using List = std::decay_t<decltype(restriction)>;
    if (restriction.empty() || restriction == List{static_cast<typename List::value_type>(neutral)}) return;
    diagnostics.error({}, fmt::format("search.{} is not a dimension of the search", name), "leave it out");
  };
  neutral_alone("attention_tensor", search.attention_tensor, 0);
  neutral_alone("feed_forward_tensor", search.feed_forward_tensor, 0);
  neutral_alone("embedding_tensor", search.embedding_tensor, 0);
  neutral_alone("output_tensor", search.output_tensor, 0);
  neutral_alone("output_mode", search.output_mode, specs::OutputLayerMode::vocabulary_parallel);
  neutral_alone("micro_batch_group", search.micro_batch_group, 0);
  neutral_alone("delayed_update", search.delayed_update, false);
  if (search.unequal_stage_meshes)
    diagnostics.error({}, "search.unequal_stage_meshes: all stages have the same mesh", "leave it out");
  return diagnostics;
}

}  // namespace

specs::Diagnostics unplannable(const specs::Experiment& experiment) {
  specs::Diagnostics diagnostics = unsearchable(experiment.search);
  if (is_mixed(experiment.cluster) && experiment.search.idle_nodes > 0)
    diagnostics.error({}, "search.idle_nodes: a cluster of several groups is used whole", "leave it out");
  return diagnostics;
}

specs::Result<PlanOutcome> plan_experiment(const specs::Experiment& experiment, const std::atomic<bool>* stop,
                                           SearchMethod method) {
  specs::Result<PlanOutcome> outcome;
  outcome.diagnostics = unplannable(experiment);
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(experiment.training.stack);
  outcome.diagnostics.append(stack.diagnostics);
  if (outcome.diagnostics.has_errors()) return outcome;

  const cost_models::Estimator estimator(experiment);
  const std::unique_ptr<Pricer> owned = make_pricer(experiment, *stack, estimator);
  const Pricer& pricer = *owned;
  const Space space(experiment, *stack);
  const SearchResult result = method == SearchMethod::exhaustive
                                  ? exhaustive_search(experiment, *stack, pricer, stop)
                                  : branch_and_bound(experiment, space, estimator, pricer, stop);
  outcome.value.emplace();
  if (!result.best && !result.complete) return outcome;
  if (!result.best) {
    outcome.value->infeasibility = infeasibility_of(experiment, *stack, space, result, pricer);
    return outcome;
  }
  specs::Plan plan = assemble_plan(experiment, estimator, pricer.placement(result.best->placement));
  plan.certificate = certificate_of(result, pricer);
  add_runners_up(result, pricer, estimator, plan);
  add_binding_constraint(result, pricer, plan);
  outcome.value->plan = std::move(plan);
  return outcome;
}

}  // namespace planner
