#include "planner/questions/why_not.h"

#include <array>
#include <charconv>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cost_models/estimate.h"
#include "planner/certificate/certificate.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/space/illegality.h"
#include "planner/space/space.h"
#include "planner/wording/quantity.h"
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

std::vector<std::string> legal_values(const Space& space, std::string_view name) {
  for (const Dimension& dimension : space.dimensions())
    if (dimension.name == name) return dimension.values;
  return {};
}

struct WrittenNumber {
  std::string_view text;
  std::int64_t value = 0;
};

/// The whole numbers of "[9999]" or "[2, 4]"; one that no integer holds counts as the largest.
std::vector<WrittenNumber> numbers_in(std::string_view text) {
  std::vector<WrittenNumber> numbers;
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const auto end = static_cast<std::size_t>(stop - text.data());
    if (error == std::errc::result_out_of_range) value = std::numeric_limits<std::int64_t>::max();
    if (error != std::errc::invalid_argument) numbers.push_back({text.substr(at, end - at), value});
    at = std::max(at + 1, end);
  }
  return numbers;
}

}  // namespace

specs::Diagnostics impossible_values(const specs::Plan& plan, const std::vector<std::string>& settings) {
  specs::Diagnostics diagnostics;
  const specs::Experiment& inputs = plan.inputs;
  const std::int64_t devices = inputs.cluster.devices();
  const std::int64_t layers = specs::block_count(inputs.model);
  const std::int64_t experts = inputs.model.mixture ? inputs.model.mixture->experts : 1;
  const std::array<std::tuple<std::string_view, std::int64_t, std::string_view>, 9> counted{{
      {"tensor", devices, "devices"},
      {"context", devices, "devices"},
      {"pipeline", std::min(devices, 2 * layers), "devices and pieces of the model"},
      {"data", devices, "devices"},
      {"expert", std::min(devices, experts), "devices and experts"},
      {"expert_tensor", devices, "devices"},
      {"micro_batch", inputs.training.global_batch, "sequences of a step"},
      {"virtual_stages", 2 * layers, "pieces of the model"},
      {"recomputed_layers", layers, "layers"},
  }};
  for (const std::string& setting : settings)
    for (const auto& [name, largest, of_what] : counted) {
      const std::string key = fmt::format("search.{}=", name);
      if (!setting.starts_with(key)) continue;
      for (const auto& [written, number] : numbers_in(std::string_view(setting).substr(key.size()))) {
        const std::int64_t smallest = name == "recomputed_layers" ? 0 : 1;
        if (number >= smallest && number <= largest) continue;
        specs::Experiment free = inputs;
        free.search = {};
        const specs::Result<specs::StackSpec> stack = specs::stack_of(inputs.training);
        const std::string legal =
            stack ? fmt::format("{}", fmt::join(legal_values(Space(free, *stack), name), ", ")) : "";
        diagnostics.error({"--set", 1, 1},
                          fmt::format("{} = {} is not between {} and the {} {}", name, written, smallest,
                                      format_count(largest), of_what),
                          legal.empty() ? std::string() : "legal: " + legal);
      }
    }
  return diagnostics;
}

namespace {

specs::Result<WhyNot> answer_to(const specs::Experiment& question, const specs::Plan& plan) {
  specs::Result<WhyNot> result;
  result.diagnostics = unplannable(question);
  const specs::Result<specs::StackSpec> stack = specs::stack_of(question.training);
  result.diagnostics.append(stack.diagnostics);
  if (result.diagnostics.has_errors()) return result;

  WhyNot& answer = result.value.emplace();
  const Space space(question, *stack);
  if (space.meshes().empty()) {
    answer.reasons = why_empty(question, *stack).reasons;
    return result;
  }
  const cost_models::Estimator estimator(question);
  const std::unique_ptr<Pricer> owned = make_pricer(question, *stack, estimator);
  const Pricer& pricer = *owned;
  const SearchResult found = branch_and_bound(question, space, estimator, pricer);
  const PricedCandidate candidate = found.best ? *found.best : *found.nearest_infeasible;
  answer.placement = pricer.placement(candidate.placement);
  answer.cost = estimator.estimate(*answer.placement);
  if (!found.best) {
    answer.verdict = Verdict::does_not_fit;
    const PricedCandidate nearest = *found.nearest_infeasible;
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

}  // namespace

specs::Result<WhyNot> why_not(const specs::Plan& plan, const std::optional<specs::Experiment>& kept,
                              const specs::Experiment& free) {
  if (kept && kept->search != free.search) {
    specs::Result<WhyNot> answer = answer_to(*kept, plan);
    if (answer && answer->verdict != Verdict::illegal && answer->verdict != Verdict::does_not_fit)
      return answer;
  }
  return answer_to(free, plan);
}

}  // namespace planner
