#include "tests/stack_profile/space_coverage.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "specs/language/model.h"

namespace planner {

namespace {

class Values {
 public:
  template <class Value>
  void add(std::string_view dimension, const Value& value) {
    all_.insert(fmt::format("{}: {}", dimension, value));
  }
  template <class Enum>
  void add_name(std::string_view dimension, Enum value) {
    add(dimension, specs::name_of(value));
  }
  void add_offload(std::string_view part, const specs::OffloadTreatment& treatment) {
    add(part, fmt::format("{} {}/8", specs::name_of(treatment.device), treatment.eighths));
  }
  std::set<std::string> take() { return std::move(all_); }

 private:
  std::set<std::string> all_;
};

void add_degrees(Values& values, const specs::StageMesh& mesh, std::int64_t pipeline) {
  values.add("tensor", mesh.tensor);
  values.add("data", mesh.data);
  values.add("pipeline", pipeline);
}

/// Axes of one rank have no place in an order.
bool shows_order(const specs::StageMesh& mesh, std::int64_t pipeline) {
  return mesh.tensor > 1 && mesh.data > 1 && pipeline > 1;
}

void add_stage(Values& values, const specs::PipelineStage& stage, std::int64_t layers) {
  values.add("zero", fmt::format("{} {}", stage.zero.stage, specs::name_of(stage.zero.scope)));
  values.add_offload("optimizer", stage.offload.optimizer);
  values.add_offload("parameters", stage.offload.parameters);
  values.add_offload("activations", stage.offload.activations);
  values.add("delayed update", stage.offload.delayed_update);
  if (stage.recomputation.empty()) values.add_name("recomputation", specs::Recomputation::none);
  for (const specs::RecomputationRun& run : stage.recomputation) values.add_name("recomputation", run.mode);
  const bool starts_in_layer = stage.units.first > 0 && stage.units.first < specs::output_unit(layers) &&
                               (stage.units.first - specs::attention_unit(0)) % 2 != 0;
  values.add("cut inside a layer", starts_in_layer);
}

}  // namespace

std::set<std::string> values_of(const specs::Plan& plan) {
  Values values;
  const specs::Placement& placement = plan.placement;
  const specs::TrainingSpec& training = plan.inputs.training;
  const specs::PipelineStage& first = placement.stages.front();
  const std::int64_t pipeline = placement.pipeline_ranks();
  add_degrees(values, first.mesh, pipeline);
  if (shows_order(first.mesh, pipeline)) values.add("order", specs::to_string(first.mesh.order));
  if (pipeline > 1) {
    values.add_name("schedule", placement.schedule);
    if (placement.schedule == specs::ScheduleKind::interleaved) {
      values.add("virtual stages", placement.virtual_stages);
      values.add("larger groups of micro-batches", placement.micro_batch_group > pipeline);
    }
  }
  if (first.mesh.tensor > 1) {
    values.add("sequence parallel", placement.sequence_parallel);
    values.add_name("output", first.modules.output_mode);
  }
  bool uneven = false;
  for (const specs::PipelineStage& stage : placement.stages) {
    add_stage(values, stage, plan.inputs.model.layers);
    uneven |= stage.units.end - stage.units.first != first.units.end - first.units.first;
  }
  values.add("uneven stages", uneven);
  values.add_name("precision", training.precision);
  values.add_name("optimizer kind", training.optimizer.type);
  values.add_name("attention", training.attention);
  values.add("local steps", placement.local_steps);
  return values.take();
}

std::set<std::string> values_of(const specs::StackSpec& stack) {
  Values values;
  for (const std::int64_t degree : {1, 2, 3, 4, 6, 8}) {
    values.add("data", degree);
    if (stack.tensor_parallel) values.add("tensor", degree);
    if (!stack.schedules.empty()) values.add("pipeline", degree);
  }
  for (const std::string& order : stack.axis_orders) values.add("order", order);
  for (const specs::ScheduleKind kind : stack.schedules) values.add_name("schedule", kind);
  for (const std::int64_t stages : {2, 3, 4}) values.add("virtual stages", stages);
  for (const bool on : {false, true}) {
    if (!on || stack.micro_batch_groups) values.add("larger groups of micro-batches", on);
    if (!on || stack.sequence_parallel) values.add("sequence parallel", on);
    if (!on || stack.delayed_update) values.add("delayed update", on);
    if (!on || stack.uneven_stages) values.add("uneven stages", on);
    if (!on || stack.cuts_inside_layers) values.add("cut inside a layer", on);
  }
  for (const specs::OutputLayerMode mode : stack.output_modes) values.add_name("output", mode);
  for (const std::int64_t stage : stack.zero_stages)
    for (const specs::ShardScope scope : stack.shard_scopes)
      if (stage > 0 || scope == specs::ShardScope::world)
        values.add("zero", fmt::format("{} {}", stage, specs::name_of(scope)));
  const auto add_offload = [&](std::string_view part, const std::vector<specs::OffloadDevice>& devices) {
    for (const specs::OffloadDevice device : devices) {
      if (device == specs::OffloadDevice::none)
        values.add_offload(part, {});
      else
        for (std::int64_t eighths = 1; eighths <= 8; ++eighths) values.add_offload(part, {device, eighths});
    }
  };
  add_offload("optimizer", stack.optimizer_offload);
  add_offload("parameters", stack.parameter_offload);
  add_offload("activations", stack.activation_offload);
  for (const specs::Recomputation mode : stack.recomputations) values.add_name("recomputation", mode);
  for (const specs::Precision precision : stack.precisions) values.add_name("precision", precision);
  for (const specs::OptimizerKind kind : stack.optimizers) values.add_name("optimizer kind", kind);
  for (const specs::AttentionImplementation kind : stack.attention) values.add_name("attention", kind);
  values.add("local steps", 1);
  if (stack.local_steps) values.add("local steps", 2);
  return values.take();
}

}  // namespace planner
