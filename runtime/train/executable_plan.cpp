#include "runtime/train/executable_plan.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/capabilities.h"
#include "specs/plan/placement_check.h"
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

/// The rest looks into stages and devices, and assumes these.
bool has_ranks(const specs::Plan& plan, const specs::SourcePosition& position,
               specs::Diagnostics& diagnostics) {
  if (plan.placement.stages.empty()) {
    diagnostics.error(position, "the placement has no stages", "make the plan anew with dsplan");
    return false;
  }
  if (plan.placement.world_size() != plan.world_size)
    diagnostics.error(position,
                      fmt::format("world_size {} ≠ {} ranks of the placement's stages", plan.world_size,
                                  plan.placement.world_size()),
                      "make the plan anew with dsplan");
  return plan.placement.world_size() == plan.world_size;
}

}  // namespace

specs::Result<specs::Schedule> executable_schedule(const specs::Plan& plan, const std::string& file) {
  specs::Result<specs::Schedule> result;
  const specs::SourcePosition position{.file = file};
  const specs::Placement& placement = plan.placement;
  if (!has_ranks(plan, position, result.diagnostics)) return result;
  result.diagnostics.append(specs::check_placement(placement, plan.inputs.model, plan.inputs.cluster,
                                                   plan.inputs.training, position));
  for (const std::string& reason : capability_refusals(placement, plan.inputs.training))
    result.diagnostics.error(position, reason, "plan with stack = \"dsrun\"");
  if (result.diagnostics.has_errors()) return result;

  // Unequal shares are refused above, so that there is one schedule for all replicas.
  if (plan.schedule.replicas.size() != 1 ||
      plan.schedule.replicas.front().micro_batches != placement.accumulation) {
    result.diagnostics.error(
        position,
        fmt::format("the schedule is not the one of {} micro-batches that all replicas run",
                    placement.accumulation),
        "make the plan anew with dsplan");
    return result;
  }
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
