// The rules of what saves memory: recomputation, shards of ZeRO, and what lies on the host or a drive.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/legality.h"
#include "planner/space/node_replicas.h"
#include "planner/space/refusals.h"

namespace planner {

using specs::name_of;

MaybeRefusal Legality::recomputation(specs::Recomputation mode) const {
  if (!contains(stack_.recomputations, mode))
    return unsupported(stack_, fmt::format("recomputation \"{}\"", name_of(mode)));
  const bool numbered = stack_.recomputed_layers == specs::RecomputedLayerNumbers::each ||
                        (stack_.recomputed_layers == specs::RecomputedLayerNumbers::alike &&
                         mode == specs::Recomputation::full);
  if (mode != specs::Recomputation::none && !numbered && !experiment_.search.recomputed_layers.empty())
    return unsupported(stack_,
                       fmt::format("numbers of layers for recomputation \"{}\": [search] "
                                   "recomputed_layers = [{}]",
                                   name_of(mode), fmt::join(experiment_.search.recomputed_layers, ", ")));
  return restricted_name("recomputation", experiment_.search.recomputation, mode);
}

bool Legality::shares_nodes_evenly(const MeshDegrees& mesh) const {
  if (!contains(stack_.shard_scopes, specs::ShardScope::node)) return true;
  const std::vector<specs::AxisOrder> orders = axis_orders(mesh);
  return std::all_of(orders.begin(), orders.end(), [&](const specs::AxisOrder& order) {
    return nodes_hold_equal_replicas(mesh, order, experiment_.cluster.groups.front().node.devices);
  });
}

MaybeRefusal Legality::zero(const MeshDegrees& mesh, const specs::ZeroTreatment& zero) const {
  if (zero.stage < 0 || zero.stage > 3)
    return refuse(Constraint::software_stack, fmt::format("zero_stage = {} is not 0, 1, 2 or 3", zero.stage));
  if (mesh.data * mesh.context == 1 && zero != specs::ZeroTreatment{3, specs::ShardScope::world}) {
    if (zero == specs::ZeroTreatment{}) return std::nullopt;
    return refuse(Constraint::device_count, "ZeRO shards over data · context = 1 replica: nothing to share");
  }
  if (!contains(stack_.zero_stages, zero.stage))
    return unsupported(stack_, fmt::format("ZeRO stage {}", zero.stage));
  if (mesh.pipeline > 1 && zero.stage > stack_.zero_stage_with_pipeline)
    return refuse(Constraint::software_stack, fmt::format("ZeRO stage {} beside pipeline {}: {}", zero.stage,
                                                          mesh.pipeline, stack_.zero_with_pipeline_reason));
  // A replica alone shares nothing, but its parameters may lie elsewhere.
  if (mesh.data * mesh.context == 1 && stack_.parameter_offload.size() <= 1)
    return refuse(
        Constraint::device_count,
        fmt::format("ZeRO stage 3 of a single replica serves to offload parameters, which stack \"{}\" "
                    "does not",
                    stack_.name));
  if (auto refusal = restricted("zero_stage", experiment_.search.zero_stage, zero.stage)) return refusal;
  const specs::NodeSpec& node = experiment_.cluster.groups.front().node;
  const std::int64_t model_ranks = mesh.tensor;
  const std::int64_t replicas_in_node = model_ranks < node.devices ? node.devices / model_ranks : 1;
  const bool scope_matters =
      zero.stage > 0 && replicas_in_node > 1 && replicas_in_node < mesh.data * mesh.context;
  if (!scope_matters) {
    if (zero.scope == specs::ShardScope::world) return std::nullopt;
    return refuse(Constraint::device_count,
                  fmt::format("shard scope \"node\": {} of {} replicas lie in a node", replicas_in_node,
                              mesh.data * mesh.context));
  }
  if (!shares_nodes_evenly(mesh)) {
    if (zero.scope == specs::ShardScope::world) return std::nullopt;
    return refuse(
        Constraint::device_count,
        fmt::format("shard scope \"node\": nodes of {} devices hold unequal numbers of a parameter's "
                    "{} replicas",
                    node.devices, mesh.data * mesh.context));
  }
  if (!contains(stack_.shard_scopes, zero.scope))
    return unsupported(stack_, fmt::format("shard scope \"{}\"", name_of(zero.scope)));
  return restricted_name("shard_scope", experiment_.search.shard_scope, zero.scope);
}

MaybeRefusal Legality::offload_of(OffloadPart part, const specs::OffloadTreatment& treatment) const {
  struct Rules {
    std::string_view name;
    const std::vector<specs::OffloadDevice>& offered;
    const std::vector<specs::OffloadOption>& restriction;
  };
  const specs::SearchSpec& search = experiment_.search;
  const Rules rules =
      part == OffloadPart::optimizer
          ? Rules{"offload_optimizer", stack_.optimizer_offload, search.offload_optimizer}
      : part == OffloadPart::parameters
          ? Rules{"offload_parameters", stack_.parameter_offload, search.offload_parameters}
          : Rules{"offload_activations", stack_.activation_offload, search.offload_activations};
  const specs::OffloadDevice device = treatment.device;
  if (device != specs::OffloadDevice::none && !contains(rules.offered, device))
    return unsupported(stack_, fmt::format("{} to \"{}\"", rules.name, name_of(device)));
  if (specs::allows(rules.restriction, device, treatment.eighths)) return std::nullopt;
  std::vector<std::string> named;
  for (const specs::OffloadOption& option : rules.restriction) named.push_back(to_string(option));
  return refuse(
      Constraint::search_restriction,
      fmt::format("{0} = \"{1}\" is not in [search] {0} = [{2}]", rules.name,
                  to_string(specs::OffloadOption{device, treatment.eighths}), fmt::join(named, ", ")));
}

MaybeRefusal Legality::offload(const MeshDegrees& mesh, const specs::StageOffload& offload,
                               const specs::ZeroTreatment& zero) const {
  if (auto refusal = offload_of(OffloadPart::optimizer, offload.optimizer)) return refusal;
  if (auto refusal = offload_of(OffloadPart::parameters, offload.parameters)) return refusal;
  if (auto refusal = offload_of(OffloadPart::activations, offload.activations)) return refusal;
  if (offload.activations.device != specs::OffloadDevice::none && mesh.pipeline > 1 &&
      !stack_.activation_offload_with_pipeline)
    return refuse(Constraint::software_stack,
                  fmt::format("stack \"{}\" offloads no activations beside a pipeline (pipeline {})",
                              stack_.name, mesh.pipeline));
  if (offload.parameters.device != specs::OffloadDevice::none && zero.stage < 3)
    return refuse(Constraint::software_stack,
                  fmt::format("parameters are offloaded with ZeRO 3 alone, not {}", zero.stage));
  return std::nullopt;
}

MaybeRefusal Legality::delayed_update(const specs::StageOffload& offload) const {
  const std::vector<bool>& named = experiment_.search.delayed_update;
  const bool offloaded = offload.optimizer.device != specs::OffloadDevice::none;
  if (!offload.delayed_update) {
    if (!offloaded || allowed(named, false)) return std::nullopt;
    return refuse(Constraint::search_restriction,
                  "delayed_update = false is not in [search] delayed_update = [true]");
  }
  if (!offloaded)
    return refuse(Constraint::software_stack,
                  "an update can only be delayed where the optimizer is offloaded");
  if (!stack_.delayed_update) return unsupported(stack_, "delayed update");
  if (contains(named, true)) return std::nullopt;
  return refuse(Constraint::search_restriction,
                "delayed_update = true is not named in [search] delayed_update: it changes the mathematics");
}

std::vector<specs::OffloadTreatment> Legality::offload_choices(OffloadPart part) const {
  std::vector<specs::OffloadTreatment> choices;
  if (!offload_of(part, {})) choices.emplace_back();
  for (const specs::OffloadDevice device : {specs::OffloadDevice::cpu, specs::OffloadDevice::nvme})
    for (std::int64_t eighths = 1; eighths <= 8; ++eighths)
      if (!offload_of(part, {device, eighths})) choices.push_back({device, eighths});
  return choices;
}

}  // namespace planner
