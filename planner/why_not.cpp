#include "planner/why_not.h"

#include "cost_models/estimate.h"
#include "planner/certificate.h"
#include "planner/exhaustive_search.h"
#include "planner/illegality.h"
#include "planner/plan_experiment.h"
#include "planner/pricing.h"
#include "planner/space.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

/// The restriction of the plan's own [search] that leaves the candidate out.
MaybeRefusal refused_by_plan(const specs::Plan& plan, const specs::StackSpec& stack,
                             const specs::RegularPlacement& candidate) {
  const MaybeRefusal refusal = Legality(plan.inputs, stack).placement(candidate);
  if (refusal && refusal->constraint == Constraint::search_restriction) return refusal;
  return std::nullopt;
}

}  // namespace

specs::Result<WhyNot> why_not(const specs::Plan& plan, const specs::Experiment& question) {
  specs::Result<WhyNot> result;
  result.diagnostics = unplannable(question);
  const specs::Result<specs::StackSpec> stack = specs::catalog_stack(question.training.stack);
  result.diagnostics.append(stack.diagnostics);
  if (result.diagnostics.has_errors()) return result;

  WhyNot& answer = result.value.emplace();
  const Space space(question, *stack);
  if (space.meshes().empty()) {
    answer.reasons = reasons_for_empty_space(question, *stack, space);
    return result;
  }
  const cost_models::Estimator estimator(question);
  const EstimatorPricer pricer(question, estimator);
  const SearchResult found = exhaustive_search(space, pricer);
  const PricedCandidate candidate = found.best ? *found.best : *found.best_infeasible();
  answer.placement = pricer.placement(candidate.placement);
  answer.cost = estimator.estimate(*answer.placement);
  if (!found.best) {
    answer.verdict = Verdict::does_not_fit;
    const PricedCandidate nearest = *found.nearest_infeasible(pricer);
    const Constraint constraint =
        pricer.fits_device(nearest.price) ? Constraint::host_memory : Constraint::device_memory;
    answer.reasons.push_back(std::string(specs::name_of(constraint)) + ": " +
                             memory_equation(constraint, nearest.price, pricer) + " at the least (" +
                             describe(mesh_of(nearest.placement)) + " " +
                             describe_inside_mesh(nearest.placement) + ")");
    return result;
  }
  if (*answer.placement == plan.placement) {
    answer.verdict = Verdict::chosen;
  } else if (const MaybeRefusal refusal = refused_by_plan(plan, *stack, candidate.placement)) {
    answer.verdict = Verdict::excluded_by_search;
    answer.reasons.push_back(refusal->equation);
  } else {
    answer.verdict = candidate.price.objective > plan.objective ? Verdict::worse : Verdict::equal;
  }
  return result;
}

}  // namespace planner
