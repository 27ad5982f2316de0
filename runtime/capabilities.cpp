#include "runtime/capabilities.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace runtime {
namespace {

specs::StackSpec make_capabilities() {
  specs::StackSpec stack;
  stack.name = "dsrun";
  stack.precisions = {specs::Precision::fp64, specs::Precision::fp32, specs::Precision::fp16,
                      specs::Precision::bf16};
  stack.optimizers = {specs::OptimizerKind::adamw, specs::OptimizerKind::sgd};
  stack.schedules = {specs::ScheduleKind::gpipe, specs::ScheduleKind::one_forward_one_backward,
                     specs::ScheduleKind::interleaved, specs::ScheduleKind::zero_bubble_h1};
  stack.recomputations = {specs::Recomputation::none, specs::Recomputation::selective,
                          specs::Recomputation::full};
  stack.recomputed_layers = specs::RecomputedLayerNumbers::each;
  stack.attention = {specs::AttentionImplementation::unfused, specs::AttentionImplementation::flash};
  stack.zero_stages = {0, 1, 2, 3};
  stack.zero_stage_with_pipeline = 1;
  stack.zero_with_pipeline_reason = "gradients must stay whole over all micro-batches of a step";
  stack.shard_scopes = {specs::ShardScope::world, specs::ShardScope::node};
  // Ranks may fill the mesh in any order; context has one rank, wherever it stands.
  stack.axis_orders = {"tp-cp-dp-pp", "tp-cp-pp-dp", "dp-cp-tp-pp",
                       "dp-cp-pp-tp", "pp-tp-cp-dp", "pp-dp-cp-tp"};
  stack.output_modes = {specs::OutputLayerMode::vocabulary_parallel, specs::OutputLayerMode::token_parallel};
  stack.optimizer_offload = {specs::OffloadDevice::none, specs::OffloadDevice::cpu};
  stack.parameter_offload = {specs::OffloadDevice::none};
  stack.activation_offload = {specs::OffloadDevice::none};
  stack.gradient_bucket.bytes = stack.gather_bucket.bytes = 25 * (std::int64_t{1} << 20);
  stack.tensor_parallel = true;
  stack.sequence_parallel = true;
  stack.uneven_stages = true;
  stack.cuts_inside_layers = true;
  stack.micro_batch_groups = true;
  stack.delayed_update = true;
  stack.cpu_devices = true;
  stack.overlaps_gradient_reduction = true;
  stack.overlaps_parameter_gather = true;
  return stack;
}

class Refusals {
 public:
  template <class Value>
  void unless_in(const std::vector<Value>& supported, Value seen, std::string_view what) {
    if (std::find(supported.begin(), supported.end(), seen) != supported.end()) return;
    std::vector<std::string_view> names;
    for (const Value value : supported) names.push_back(specs::name_of(value));
    add(fmt::format("{} {} is not implemented; implemented: {}", what, specs::name_of(seen),
                    fmt::join(names, ", ")));
  }
  void when(bool condition, std::string text) {
    if (condition) add(std::move(text));
  }
  std::vector<std::string> take() { return std::move(reasons_); }

 private:
  /// Stages are often alike: each reason once.
  void add(std::string text) {
    if (std::find(reasons_.begin(), reasons_.end(), text) == reasons_.end())
      reasons_.push_back(std::move(text));
  }

  std::vector<std::string> reasons_;
};

void refuse_stage(const specs::PipelineStage& stage, bool pipelined, Refusals& refusals) {
  const specs::StackSpec& can = capabilities();
  refusals.when(stage.mesh.tensor > 1 && !can.tensor_parallel, "tensor parallelism is not implemented");
  refusals.when(stage.mesh.context > 1 && !can.context_parallel, "context parallelism is not implemented");
  refusals.when(stage.mesh.expert > 1 && !can.expert_parallel, "expert parallelism is not implemented");
  refusals.when(stage.mesh.expert_tensor > 1 && !can.expert_tensor_parallel,
                "tensor parallelism inside experts is not implemented");
  refusals.when(
      std::find(can.zero_stages.begin(), can.zero_stages.end(), stage.zero.stage) == can.zero_stages.end(),
      fmt::format("ZeRO stage {} is not implemented; implemented: {}", stage.zero.stage,
                  fmt::join(can.zero_stages, ", ")));
  refusals.when(pipelined && stage.zero.stage > can.zero_stage_with_pipeline,
                fmt::format("ZeRO stage {} beside a pipeline is not executed: {}", stage.zero.stage,
                            can.zero_with_pipeline_reason));
  refusals.unless_in(can.shard_scopes, stage.zero.scope, "ZeRO shard scope");
  refusals.unless_in(can.optimizer_offload, stage.offload.optimizer.device, "optimizer offload to");
  refusals.unless_in(can.parameter_offload, stage.offload.parameters.device, "parameter offload to");
  refusals.unless_in(can.activation_offload, stage.offload.activations.device, "activation offload to");
  refusals.unless_in(can.output_modes, stage.modules.output_mode, "output layer");
  specs::ModuleTreatments whole_stage;
  whole_stage.output_mode = stage.modules.output_mode;
  if (stage.modules.output_mode == specs::OutputLayerMode::token_parallel) whole_stage.output_tensor = 1;
  refusals.when(stage.modules != whole_stage && stage.mesh.tensor > 1,
                "modules with a tensor degree of their own are not implemented");
  for (const specs::RecomputationRun& run : stage.recomputation) {
    refusals.unless_in(can.recomputations, run.mode, "recomputation");
    for (const auto& [module, name] : specs::EnumNames<specs::RecomputedModule>::names)
      refusals.when((run.modules & static_cast<std::uint32_t>(module)) != 0 &&
                        module != specs::RecomputedModule::core_attention,
                    fmt::format("selective recomputation of {} is not implemented; implemented: {}", name,
                                specs::name_of(specs::RecomputedModule::core_attention)));
  }
}

/// Parameters, and what is gathered of them, are of the training precision; gradients travel as they are
/// kept; moments are wide.
void refuse_precisions(const specs::TrainingSpec& training, Refusals& refusals) {
  using specs::Precision;
  const auto unless_is = [&](const char* key, Precision value, Precision only) {
    refusals.when(value != only, fmt::format("{} {} beside precision {} is not implemented; implemented: {}",
                                             key, specs::name_of(value), specs::name_of(training.precision),
                                             specs::name_of(only)));
  };
  unless_is("reduction_precision", training.reduction_precision, training.gradient_precision);
  unless_is("parameter_precision", training.parameter_precision.value_or(training.precision),
            training.precision);
  unless_is("gather_precision", training.gather_precision.value_or(training.precision), training.precision);
  unless_is("optimizer_state_precision", training.optimizer_state_precision,
            training.precision == Precision::fp64 ? Precision::fp64 : Precision::fp32);
}

}  // namespace

const specs::StackSpec& capabilities() {
  static const specs::StackSpec stack = make_capabilities();
  return stack;
}

std::vector<std::string> capability_refusals(const specs::Placement& placement,
                                             const specs::TrainingSpec& training) {
  const specs::StackSpec& can = capabilities();
  Refusals refusals;
  refusals.unless_in(can.precisions, training.precision, "precision");
  refuse_precisions(training, refusals);
  refusals.unless_in(can.optimizers, training.optimizer.type, "optimizer");
  refusals.unless_in(can.attention, training.attention, "attention");
  const bool pipelined = placement.pipeline_ranks() > 1;
  if (pipelined) refusals.unless_in(can.schedules, placement.schedule, "schedule");
  refusals.when(placement.sequence_parallel && !can.sequence_parallel,
                "sequence parallelism is not implemented");
  refusals.when(!placement.replica_shares.empty(), "unequal shares of the batch are not implemented");
  refusals.when(placement.local_steps > 1 && !can.local_steps, "local steps are not implemented");
  for (const specs::PipelineStage& stage : placement.stages) refuse_stage(stage, pipelined, refusals);
  return refusals.take();
}

}  // namespace runtime
