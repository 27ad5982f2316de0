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

template <class Value>
void check_stack_list(const char* key, const std::vector<Value>& values, const std::vector<Value>& supported,
                      const std::string& stack, CheckReport& report) {
  const auto text = [](const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      return std::string(name_of(value));
    else
      return fmt::format("{}", value);
  };
  std::vector<std::string> names;
  for (const Value& value : supported) names.push_back(text(value));
  ListCheck<Value>(key, values, {"training.stack"}, report)
      .require(
          [&](const Value& value) {
            const bool known = std::find(supported.begin(), supported.end(), value) != supported.end();
            return known ? std::string() : fmt::format("stack \"{}\" has no {} {}", stack, key, text(value));
          },
          names.empty() ? std::string() : fmt::format("it has {}", fmt::join(names, ", ")));
}

void check_stack_degree(const char* key, const std::vector<std::int64_t>& values, bool supported,
                        const std::string& stack, CheckReport& report) {
  if (supported) return;
  ListCheck<std::int64_t>(key, values, {"training.stack"}, report)
      .require(
          [&](std::int64_t degree) {
            return degree > 1 ? fmt::format("stack \"{}\" has no {} parallelism", stack, key) : std::string();
          },
          "leave it out, or another training.stack");
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
        "a lower zero_stage, or pipeline = 1");
}

void check_stack(const Experiment& experiment, CheckReport& report) {
  const Result<StackSpec> stack = stack_of(experiment.training);
  if (!stack) return;
  const SearchSpec& search = experiment.search;
  const std::string& name = stack->name;
  check_stack_degree("tensor", search.tensor, stack->tensor_parallel, name, report);
  check_stack_degree("pipeline", search.pipeline, !stack->schedules.empty(), name, report);
  check_stack_degree("context", search.context, stack->context_parallel, name, report);
  check_stack_degree("expert", search.expert, stack->expert_parallel, name, report);
  check_stack_degree("expert_tensor", search.expert_tensor, stack->expert_tensor_parallel, name, report);
  if (!stack->schedules.empty())
    check_stack_list("schedule", search.schedule, stack->schedules, name, report);
  check_stack_list("zero_stage", search.zero_stage, stack->zero_stages, name, report);
  check_stack_list("shard_scope", search.shard_scope, stack->shard_scopes, name, report);
  check_stack_list("recomputation", search.recomputation, stack->recomputations, name, report);
  check_stack_list("offload_optimizer", search.offload_optimizer, stack->optimizer_offload, name, report);
  check_stack_list("offload_parameters", search.offload_parameters, stack->parameter_offload, name, report);
  check_stack_list("offload_activations", search.offload_activations, stack->activation_offload, name,
                   report);
  if (!stack->local_steps)
    ListCheck<std::int64_t>("local_steps", search.local_steps, {"training.stack"}, report)
        .require(
            [&name](std::int64_t steps) {
              return steps > 1 ? fmt::format("stack \"{}\" synchronises every update", name) : std::string();
            },
            "leave it out, or another training.stack");
  check_zero_with_pipeline(experiment, *stack, report);
}

}  // namespace

void check_search(const Experiment& experiment, CheckReport& report) {
  check_tensor(experiment, report);
  check_experts(experiment, report);
  check_batch(experiment, report);
  check_sizes(experiment, report);
  check_stack(experiment, report);
  std::int64_t nodes = 0;
  for (const ClusterGroup& group : experiment.cluster.groups) nodes += group.nodes;
  if (experiment.search.idle_nodes >= nodes && experiment.search.idle_nodes > 0)
    report.error(
        {"search.idle_nodes"},
        fmt::format("search.idle_nodes {} ≥ {} nodes: none would work", experiment.search.idle_nodes, nodes),
        fmt::format("at most {}", nodes - 1));
}

}  // namespace specs
