#include "planner/plan/plan_experiment.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost_models/constants.h"
#include "cost_models/estimate.h"
#include "planner/certificate/certificate.h"
#include "planner/plan/cost_difference.h"
#include "planner/plan/largest_part.h"
#include "planner/plan/plan_assembly.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/search/exhaustive_search.h"
#include "planner/space/group_layouts.h"
#include "planner/space/illegality.h"
#include "planner/space/module_treatments.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

specs::Placement placement_of(const PricedCandidate& candidate, const Pricer& pricer) {
  return candidate.choice ? *candidate.choice : pricer.placement(candidate.placement);
}

void add_runners_up(const SearchResult& result, const Pricer& pricer, const cost_models::Estimator& estimator,
                    specs::Plan& plan) {
  for (const PricedCandidate& candidate : result.runners_up) {
    specs::RunnerUp runner_up;
    runner_up.placement = placement_of(candidate, pricer);
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

/// What memory keeps the plan from.
void add_binding_constraint(const SearchResult& result, const Pricer& pricer, specs::Plan& plan) {
  const std::optional<PricedCandidate>& better = result.near_miss;
  if (!better) return;
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
    infeasibility.reasons = why_empty(experiment, stack).reasons;
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

/// What [search] asks of the stack and the stack cannot do: nothing would be left of the dimension.
void refuse_beyond_stack(const specs::SearchSpec& search, const specs::StackSpec& stack,
                         specs::Diagnostics& diagnostics) {
  const auto refuse = [&](std::string_view key, std::string_view what, std::string remedy) {
    diagnostics.error({}, fmt::format("search.{}: the stack \"{}\" has no {}", key, stack.name, what),
                      std::move(remedy));
  };
  for (const ModuleDegree& module : module_degrees) {
    const std::vector<std::int64_t>& named = search.*module.restriction;
    const bool own = std::any_of(named.begin(), named.end(), [](std::int64_t degree) { return degree == 0; });
    if (!named.empty() && !own && !stack.module_tensor_degrees)
      refuse(module.key, "tensor degrees of single modules",
             "leave it out, or say that this build has them: stack_features = [\"module_tensor_degrees\"]");
  }
  const auto runs = [&](specs::OutputLayerMode mode) {
    return mode == specs::OutputLayerMode::vocabulary_parallel ||
           std::count(stack.output_modes.begin(), stack.output_modes.end(), mode) > 0;
  };
  if (!search.output_mode.empty() && std::none_of(search.output_mode.begin(), search.output_mode.end(), runs))
    refuse("output_mode", "token-parallel output layer",
           "leave it out, or say that this build has it: stack_features = [\"token_parallel_output\"]");
  const std::vector<std::int64_t>& groups = search.micro_batch_group;
  if (!stack.micro_batch_groups && !groups.empty() && std::count(groups.begin(), groups.end(), 0) == 0)
    refuse("micro_batch_group", "groups of micro-batches of its own", "leave it out");
  if (!stack.delayed_update && search.delayed_update == std::vector<bool>{true})
    refuse("delayed_update", "delayed update", "leave it out");
}

/// A misspelt constant would change no price and be believed to have.
void refuse_unknown_constants(const specs::ClusterSpec& cluster, specs::Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const cost_models::Constant& constant : cost_models::ConstantTable::built_in().constants())
    known.push_back(constant.name);
  for (std::size_t group = 0; group < cluster.groups.size(); ++group)
    for (const auto& [name, value] : cluster.groups[group].node.device.efficiency) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string at = cluster.groups.size() == 1 ? "node" : fmt::format("group[{}].node", group);
      const std::string room = name.substr(0, name.find('.') + 1);
      std::vector<std::string> near;
      std::copy_if(known.begin(), known.end(), std::back_inserter(near),
                   [&](const std::string& each) { return !room.empty() && each.starts_with(room); });
      const auto nearest = specs::nearest_name(name, known);
      diagnostics.error(
          {}, fmt::format("cluster.{}.device.efficiency.{}: the cost model has no such constant", at, name),
          nearest ? fmt::format("did you mean \"{}\"?", *nearest)
                  : fmt::format("one of {}", fmt::join(near.empty() ? known : near, ", ")));
    }
}

/// What of a mixed cluster stays idle; the plan's inputs are the part in use.
specs::Advice idle_advice(const ClusterPart& part, const specs::Experiment& whole) {
  return {"idle-nodes",
          fmt::format("{} nodes stay idle", part.idle),
          fmt::format("no legal mesh uses all {} devices; the plan is that of {} of them",
                      format_count(whole.cluster.devices()), format_count(part.experiment.cluster.devices())),
          {}};
}

}  // namespace

specs::Diagnostics unplannable(const specs::Experiment& experiment) {
  specs::Diagnostics diagnostics;
  refuse_unknown_constants(experiment.cluster, diagnostics);
  if (const specs::Result<specs::StackSpec> stack = specs::stack_of(experiment.training))
    refuse_beyond_stack(experiment.search, *stack, diagnostics);
  if (experiment.search.unequal_stage_meshes)
    diagnostics.error({}, "search.unequal_stage_meshes: stages with meshes of their own are not in the space",
                      "leave it out");
  if (is_mixed(experiment.cluster) && experiment.search.idle_nodes > 0)
    diagnostics.error(
        {},
        "search.idle_nodes: of a cluster of several groups the largest legal part is used, which "
        "is no choice of the search",
        "leave it out, or plan the part with fewer nodes in its group");
  return diagnostics;
}

specs::Result<PlanOutcome> plan_experiment(const specs::Experiment& experiment, const std::atomic<bool>* stop,
                                           SearchMethod method) {
  specs::Result<PlanOutcome> outcome;
  outcome.diagnostics = unplannable(experiment);
  const specs::Result<specs::StackSpec> stack = specs::stack_of(experiment.training);
  outcome.diagnostics.append(stack.diagnostics);
  if (outcome.diagnostics.has_errors()) return outcome;

  const cost_models::Estimator estimator(experiment);
  const std::unique_ptr<Pricer> owned = make_pricer(experiment, *stack, estimator);
  const Pricer& pricer = *owned;
  const Space space(experiment, *stack);
  if (space.meshes().empty())
    if (const auto part = largest_legal_part(experiment, *stack)) {
      outcome = plan_experiment(part->experiment, stop, method);
      if (outcome && outcome->plan) outcome->plan->advice.push_back(idle_advice(*part, experiment));
      return outcome;
    }
  const SearchResult result = method == SearchMethod::exhaustive
                                  ? exhaustive_search(experiment, *stack, pricer, stop)
                                  : branch_and_bound(experiment, space, estimator, pricer, stop);
  outcome.value.emplace();
  if (!result.best && !result.complete) return outcome;
  if (!result.best) {
    outcome.value->infeasibility = infeasibility_of(experiment, *stack, space, result, pricer);
    return outcome;
  }
  specs::Plan plan = assemble_plan(experiment, estimator, placement_of(*result.best, pricer));
  plan.certificate = certificate_of(result, pricer);
  add_runners_up(result, pricer, estimator, plan);
  add_binding_constraint(result, pricer, plan);
  outcome.diagnostics = check_finite(plan);
  if (outcome.diagnostics.has_errors()) return {std::nullopt, outcome.diagnostics};
  outcome.value->plan = std::move(plan);
  return outcome;
}

}  // namespace planner
