#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/catalog.h"
#include "specs/language/checks.h"

namespace specs {

namespace {

/// A restriction of one dimension where no value is legal is an error; where some are not, a warning.
template <class Value>
class ListCheck {
 public:
  /// `depends_on` are the other keys that the check reads.
  ListCheck(const char* key, const std::vector<Value>& values, std::vector<std::string> depends_on,
            CheckReport& report)
      : path_(std::string("search.") + key), paths_(std::move(depends_on)), values_(values), report_(report) {
    paths_.insert(paths_.begin(), path_);
  }

  /// `why_not` gives the reason why a value is illegal, or nothing.
  void require(const std::function<std::string(const Value&)>& why_not, const std::string& remedy) const {
    std::vector<std::string> reasons;
    for (const Value& value : values_)
      if (std::string reason = why_not(value); !reason.empty()) reasons.push_back(std::move(reason));
    if (reasons.empty()) return;
    const std::string message = fmt::format("{}", fmt::join(reasons, "; "));
    if (reasons.size() == values_.size())
      report_.error(paths_, fmt::format("{}: no value is possible: {}", path_, message), remedy);
    else
      report_.warning(paths_, fmt::format("{}: never chosen: {}", path_, message), remedy);
  }

 private:
  std::string path_;
  std::vector<std::string> paths_;
  const std::vector<Value>& values_;
  CheckReport& report_;
};

template <class Value>
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::string indivisible(const std::string& name, std::int64_t number, const char* key, std::int64_t divisor) {
  if (number <= 0 || number % divisor == 0) return {};
  return fmt::format("{} {} % {} {} = {}", name, number, key, divisor, number % divisor);
}

void check_tensor(const Experiment& experiment, CheckReport& report) {
  const AttentionSpec& attention = experiment.model.attention;
  ListCheck<std::int64_t>("tensor", experiment.search.tensor, {"model.heads"}, report)
      .require(
          [&](std::int64_t degree) { return indivisible("model.heads", attention.heads, "tensor", degree); },
          attention.heads > 0 ? fmt::format("tensor may be {}", divisors_text(attention.heads))
                              : std::string());
}

void check_experts(const Experiment& experiment, CheckReport& report) {
  const ListCheck<std::int64_t> expert("expert", experiment.search.expert, {"model.mixture.experts"}, report);
  if (!experiment.model.mixture) {
    expert.require(
        [](std::int64_t degree) {
          return degree > 1 ? fmt::format("expert {} and the model has no experts", degree) : std::string();
        },
        "leave it out");
    return;
  }
  const std::int64_t experts = experiment.model.mixture->experts;
  expert.require(
      [&](std::int64_t degree) { return indivisible("model.mixture.experts", experts, "expert", degree); },
      experts > 0 ? fmt::format("expert may be {}", divisors_text(experts)) : std::string());
}

void check_batch(const Experiment& experiment, CheckReport& report) {
  const std::int64_t batch = experiment.training.global_batch;
  const std::string remedy = fmt::format("divisors of {}: {}", batch, divisors_text(batch));
  ListCheck<std::int64_t>("micro_batch", experiment.search.micro_batch, {"training.global_batch"}, report)
      .require(
          [&](std::int64_t size) { return indivisible("training.global_batch", batch, "micro_batch", size); },
          remedy);
  // In a mixed cluster the replicas may have unequal shares.
  if (experiment.cluster.groups.size() == 1)
    ListCheck<std::int64_t>("data", experiment.search.data, {"training.global_batch"}, report)
        .require(
            [&](std::int64_t degree) { return indivisible("training.global_batch", batch, "data", degree); },
            remedy);
}

void check_sizes(const Experiment& experiment, CheckReport& report) {
  const std::int64_t layers = experiment.model.layers;
  ListCheck<std::int64_t>("pipeline", experiment.search.pipeline, {"model.layers"}, report)
      .require(
          [layers](std::int64_t degree) {
            const bool possible = layers <= 0 || degree <= 2 * layers;  // a cut may fall inside a layer
            return possible ? std::string()
                            : fmt::format("pipeline {} > 2 · model.layers {} pieces to cut", degree, layers);
          },
          fmt::format("at most {}", 2 * layers));
  const std::int64_t devices = experiment.cluster.devices();
  const SearchSpec& search = experiment.search;
  const std::vector<const std::vector<std::int64_t>*> axes{&search.tensor, &search.pipeline, &search.data,
                                                           &search.context};
  double smallest = 1;
  std::vector<std::int64_t> factors;
  for (const auto* axis : axes) {
    if (axis->empty()) continue;
    factors.push_back(*std::min_element(axis->begin(), axis->end()));
    smallest *= static_cast<double>(factors.back());
  }
  if (smallest > static_cast<double>(devices))
    report.error({"search.tensor", "search.pipeline", "search.data", "search.context", "cluster.nodes",
                  "cluster.node"},
                 fmt::format("the smallest degrees multiply to {} = {:.0f} ranks, the cluster has {} devices",
                             fmt::join(factors, " · "), smallest, devices),
                 "smaller degrees, or more nodes");
}

/// "training.stack = a, b": those of the catalog that have it; empty where none has.
std::string stacks_with(const std::function<bool(const StackSpec&)>& has) {
  std::vector<std::string> names;
  for (const std::string& name : catalog_names(CatalogKind::stack))
    if (const Result<StackSpec> stack = catalog_stack(name); stack && has(*stack)) names.push_back(name);
  return names.empty() ? std::string() : fmt::format("training.stack = {}", fmt::join(names, ", "));
}

/// What a stack has of a dimension; elsewhere, which others have what is missing.
template <class Value, class Supports>
void check_stack_values(const char* key, const std::vector<Value>& values, const StackSpec& stack,
                        const std::string& supported, const Supports& supports, CheckReport& report) {
  const auto missing = [&](const Value& value) { return !supports(stack, value); };
  const auto first = std::find_if(values.begin(), values.end(), missing);
  if (first == values.end()) return;
  const auto text = [](const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      return std::string(name_of(value));
    else if constexpr (std::is_same_v<Value, OffloadOption>)
      return std::string(name_of(value.device));
    else
      return fmt::format("{}", value);
  };
  std::string remedy = supported.empty() ? std::string() : "it has " + supported;
  const std::string others = stacks_with([&](const StackSpec& other) { return supports(other, *first); });
  if (!others.empty())
    remedy += fmt::format("{}for {}: {}", remedy.empty() ? "" : "; ", text(*first), others);
  ListCheck<Value>(key, values, {"training.stack"}, report)
      .require(
          [&](const Value& value) {
            return missing(value) ? fmt::format("stack \"{}\" has no {} {}", stack.name, key, text(value))
                                  : std::string();
          },
          remedy);
}

template <class Value>
void check_stack_list(const char* key, const std::vector<Value>& values, const StackSpec& stack,
                      std::vector<Value> StackSpec::*supported, CheckReport& report) {
  std::vector<std::string> names;
  for (const Value& value : stack.*supported) {
    if constexpr (std::is_enum_v<Value>)
      names.emplace_back(name_of(value));
    else
      names.push_back(fmt::format("{}", value));
  }
  check_stack_values(
      key, values, stack, fmt::format("{}", fmt::join(names, ", ")),
      [supported](const StackSpec& any, const Value& value) { return holds(any.*supported, value); }, report);
}

void check_offload(const char* key, const std::vector<OffloadOption>& options, const StackSpec& stack,
                   std::vector<OffloadDevice> StackSpec::*supported, CheckReport& report) {
  std::vector<std::string_view> names;
  for (const OffloadDevice device : stack.*supported) names.push_back(name_of(device));
  check_stack_values(
      key, options, stack, fmt::format("{}", fmt::join(names, ", ")),
      [supported](const StackSpec& any, const OffloadOption& option) {
        return holds(any.*supported, option.device);
      },
      report);
}

void check_stack_degree(const char* key, const std::vector<std::int64_t>& values,
                        const std::function<bool(const StackSpec&)>& has, const StackSpec& stack,
                        CheckReport& report) {
  if (has(stack)) return;
  const std::string others = stacks_with(has);
  ListCheck<std::int64_t>(key, values, {"training.stack"}, report)
      .require(
          [&](std::int64_t degree) {
            return degree > 1 ? fmt::format("stack \"{}\" has no {} parallelism", stack.name, key)
                              : std::string();
          },
          others.empty() ? std::string("leave it out") : "leave it out, or " + others);
}

/// Only where every combination that is left asks for it: the search drops single ones by itself.
void check_zero_with_pipeline(const Experiment& experiment, const StackSpec& stack, CheckReport& report) {
  const SearchSpec& search = experiment.search;
  if (search.zero_stage.empty() || search.pipeline.empty()) return;
  const std::int64_t stage = *std::min_element(search.zero_stage.begin(), search.zero_stage.end());
  const std::int64_t pipeline = *std::min_element(search.pipeline.begin(), search.pipeline.end());
  if (pipeline > 1 && stage > stack.zero_stage_with_pipeline)
    report.error(
        {"search.zero_stage"},
        fmt::format("search.zero_stage {} with search.pipeline {}: stack \"{}\" allows at most stage {} "
                    "there: {}",
                    stage, pipeline, stack.name, stack.zero_stage_with_pipeline,
                    stack.zero_with_pipeline_reason),
        [&] {
          const std::string others =
              stacks_with([stage](const StackSpec& any) { return any.zero_stage_with_pipeline >= stage; });
          return "a lower zero_stage, or pipeline = 1" + (others.empty() ? "" : ", or " + others);
        }());
}

void check_stack(const Experiment& experiment, CheckReport& report) {
  const Result<StackSpec> stack = stack_of(experiment.training);
  if (!stack) return;
  const SearchSpec& search = experiment.search;
  const auto degree = [&](const char* key, const std::vector<std::int64_t>& values, auto has) {
    check_stack_degree(key, values, has, *stack, report);
  };
  degree("tensor", search.tensor, [](const StackSpec& any) { return any.tensor_parallel; });
  degree("pipeline", search.pipeline, [](const StackSpec& any) { return !any.schedules.empty(); });
  degree("context", search.context, [](const StackSpec& any) { return any.context_parallel; });
  degree("expert", search.expert, [](const StackSpec& any) { return any.expert_parallel; });
  degree("expert_tensor", search.expert_tensor,
         [](const StackSpec& any) { return any.expert_tensor_parallel; });
  if (!stack->schedules.empty())
    check_stack_list("schedule", search.schedule, *stack, &StackSpec::schedules, report);
  check_stack_list("zero_stage", search.zero_stage, *stack, &StackSpec::zero_stages, report);
  check_stack_list("shard_scope", search.shard_scope, *stack, &StackSpec::shard_scopes, report);
  check_stack_list("recomputation", search.recomputation, *stack, &StackSpec::recomputations, report);
  check_offload("offload_optimizer", search.offload_optimizer, *stack, &StackSpec::optimizer_offload, report);
  check_offload("offload_parameters", search.offload_parameters, *stack, &StackSpec::parameter_offload,
                report);
  check_offload("offload_activations", search.offload_activations, *stack, &StackSpec::activation_offload,
                report);
  check_stack_values(
      "local_steps", search.local_steps, *stack, "1",
      [](const StackSpec& any, std::int64_t steps) { return steps == 1 || any.local_steps; }, report);
  check_zero_with_pipeline(experiment, *stack, report);
}

/// What is minimised must be known of every kind of node: of an unknown price all placements cost the same.
void check_objective(const Experiment& experiment, CheckReport& report) {
  const Objective objective = experiment.search.objective;
  for (const ClusterGroup& group : experiment.cluster.groups) {
    const NodeSpec& node = group.node;
    if (objective == Objective::cost && node.price_per_hour_dollars <= 0)
      report.error({"search.objective", "cluster.node", "cluster.group"},
                   fmt::format("search.objective \"cost\": node \"{}\" has no price_per_hour", node.name),
                   "give it, or another objective");
    if (objective == Objective::energy && node.power_watts + node.device.power_watts <= 0)
      report.error(
          {"search.objective", "cluster.node", "cluster.group"},
          fmt::format("search.objective \"energy\": node \"{}\" and its devices have no power", node.name),
          "give it, or another objective");
  }
}

}  // namespace

void check_search(const Experiment& experiment, CheckReport& report) {
  check_tensor(experiment, report);
  check_experts(experiment, report);
  check_batch(experiment, report);
  check_sizes(experiment, report);
  check_stack(experiment, report);
  check_objective(experiment, report);
  std::int64_t nodes = 0;
  for (const ClusterGroup& group : experiment.cluster.groups) nodes += group.nodes;
  if (experiment.search.idle_nodes >= nodes && experiment.search.idle_nodes > 0)
    report.error(
        {"search.idle_nodes"},
        fmt::format("search.idle_nodes {} ≥ {} nodes: none would work", experiment.search.idle_nodes, nodes),
        fmt::format("at most {}", nodes - 1));
}

}  // namespace specs
