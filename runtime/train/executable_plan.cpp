#include "runtime/train/executable_plan.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/capabilities.h"
#include "runtime/mesh/shard_scope.h"
#include "runtime/train/trainer.h"
#include "specs/schedule/lowering.h"
#include "specs/schedule/text.h"
#include "specs/schedule/verify.h"

namespace runtime {
namespace {

/// Everything of the schedule that the placement fixes.
specs::Schedule shape_of(const specs::Plan& plan) {
  const specs::Placement& placement = plan.placement;
  specs::Schedule shape;
  shape.kind = placement.schedule;
  shape.layout = plan.schedule.layout;
  shape.pipeline_ranks = static_cast<std::int32_t>(placement.pipeline_ranks());
  shape.virtual_stages = static_cast<std::int32_t>(placement.virtual_stages);
  shape.micro_batches = static_cast<std::int32_t>(placement.accumulation);
  shape.micro_batch_group = static_cast<std::int32_t>(placement.micro_batch_group);
  return shape;
}

}  // namespace

specs::Result<specs::Schedule> executable_schedule(const specs::Plan& plan, const std::string& file) {
  specs::Result<specs::Schedule> result;
  const specs::SourcePosition position{.file = file};
  const specs::Placement& placement = plan.placement;
  for (const std::string& reason : capability_refusals(placement, plan.inputs.training))
    result.diagnostics.error(
        position, reason, "plan again with stack = \"dsrun\": dsplan leaves out what dsrun cannot execute");
  for (const specs::ClusterGroup& group : plan.inputs.cluster.groups)
    if (group.node.device.generation != "cpu")
      result.diagnostics.error(
          position,
          fmt::format("device {} is a GPU: training on GPUs is not implemented", group.node.device.name),
          "plan with node = \"localhost\"");
  if (!result.diagnostics.has_errors())
    for (const std::string& reason :
         training_refusals({plan.inputs.model, plan.inputs.training, placement, {}}))
      result.diagnostics.error(position, reason);
  for (const specs::PipelineStage& stage : placement.stages)
    if (!result.diagnostics.has_errors() && stage.zero.stage > 0 &&
        stage.zero.scope == specs::ShardScope::node && !replicas_in_node(placement, plan.ranks))
      result.diagnostics.error(
          position, "shard scope \"node\": the nodes hold unequal numbers of a parameter's replicas",
          "shard scope \"world\", or a tensor degree that divides the devices of a node");
  if (result.diagnostics.has_errors()) return result;

  // Unequal shares are refused above, so that there is one schedule for all replicas.
  const auto compute = specs::from_text(shape_of(plan), plan.schedule.replicas.front().rank_actions, file);
  result.diagnostics.append(compute.diagnostics);
  if (!compute.ok()) return result;
  result.diagnostics.append(specs::verify(*compute));
  if (result.diagnostics.has_errors()) return result;

  specs::LoweringOptions lowering;
  lowering.tied_embeddings = plan.inputs.model.tied_embeddings;
  lowering.zero_stage = placement.stages.front().zero.stage;
  specs::Schedule lowered = specs::lower(*compute, lowering);
  result.diagnostics.append(specs::verify(lowered));
  if (!result.diagnostics.has_errors()) result.value = std::move(lowered);
  return result;
}

}  // namespace runtime
