#include "planner/space/legality.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/group_layouts.h"
#include "planner/space/refusals.h"
#include "specs/schedule/generate.h"

namespace planner {
using specs::name_of;

MeshDegrees mesh_of(const specs::RegularPlacement& placement) {
  return {placement.tensor, placement.context, placement.pipeline,
          placement.data,   placement.expert,  placement.expert_tensor};
}

std::int64_t degree_of(const MeshDegrees& mesh, specs::MeshAxis axis) {
  switch (axis) {
    case specs::MeshAxis::tensor:
      return mesh.tensor;
    case specs::MeshAxis::context:
      return mesh.context;
    case specs::MeshAxis::data:
      return mesh.data;
    case specs::MeshAxis::pipeline:
      return mesh.pipeline;
  }
  return 1;
}

std::string describe(const MeshDegrees& mesh) {
  std::string text = fmt::format("tensor={} pipeline={} data={}", mesh.tensor, mesh.pipeline, mesh.data);
  if (mesh.context != 1) text += fmt::format(" context={}", mesh.context);
  if (mesh.expert != 1) text += fmt::format(" expert={}", mesh.expert);
  if (mesh.expert_tensor != 1) text += fmt::format(" expert_tensor={}", mesh.expert_tensor);
  return text;
}

Legality::Legality(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment), stack_(stack), layers_(specs::block_count(experiment.model)) {}

MaybeRefusal Legality::tensor(std::int64_t degree) const {
  const specs::ModelSpec& model = experiment_.model;
  if (auto refusal = positive("tensor", degree)) return refusal;
  if (degree > 1 && !stack_.tensor_parallel) return unsupported(stack_, "tensor parallelism");
  const auto shape = Constraint::model_shape;
  if (auto refusal = divides(model.attention.heads, "heads", degree, "tensor", shape)) return refusal;
  const std::int64_t kv_heads = model.attention.kv_heads;
  if (!model.attention.latent && kv_heads % degree != 0 && degree % kv_heads != 0)
    return refuse(
        shape, fmt::format("{} key-value heads and tensor {}: neither divides the other", kv_heads, degree));
  if (auto refusal = divides(model.feed_forward.hidden, "FFN width", degree, "tensor", shape)) return refusal;
  if (model.mixture)
    if (auto refusal =
            divides(model.mixture->shared_expert_hidden, "shared expert width", degree, "tensor", shape))
      return refusal;
  return restricted("tensor", experiment_.search.tensor, degree);
}

MaybeRefusal Legality::context(std::int64_t degree) const {
  if (auto refusal = positive("context", degree)) return refusal;
  if (degree > 1 && !stack_.context_parallel) return unsupported(stack_, "context parallelism");
  // Each rank takes one piece from the front and one from the back, so that causal work is equal.
  const std::int64_t pieces = degree > 1 ? 2 * degree : 1;
  if (auto refusal = divides(experiment_.training.sequence_length, "sequence length", pieces,
                             "context · 2 =", Constraint::batch_shape))
    return refusal;
  return restricted("context", experiment_.search.context, degree);
}

MaybeRefusal Legality::pipeline(std::int64_t degree) const {
  if (auto refusal = positive("pipeline", degree)) return refusal;
  if (degree > 1 && stack_.schedules.empty()) return unsupported(stack_, "pipeline parallelism");
  if (auto refusal = virtual_stages({.pipeline = degree}, 1)) return refusal;
  return restricted("pipeline", experiment_.search.pipeline, degree);
}

MaybeRefusal Legality::virtual_stages(const MeshDegrees& mesh, std::int64_t virtual_stages) const {
  const std::int64_t stages = mesh.pipeline * virtual_stages;
  const std::string product = virtual_stages == 1 ? fmt::format("pipeline {}", mesh.pipeline)
                                                  : fmt::format("pipeline {} · virtual stages {} = {}",
                                                                mesh.pipeline, virtual_stages, stages);
  if (stages > layers_)
    return refuse(Constraint::model_shape, fmt::format("{} stages for {} layers", product, layers_));
  if (layers_ % stages == 0) return std::nullopt;
  if (virtual_stages > 1)
    return refuse(Constraint::schedule_shape,
                  fmt::format("{} layers % {} = {}: stages that share a rank are equal", layers_, product,
                              layers_ % stages));
  if (!experiment_.search.uneven_stages)
    return refuse(Constraint::search_restriction,
                  fmt::format("{} layers % {} = {} and [search] uneven_stages = false", layers_, product,
                              layers_ % stages));
  if (!stack_.uneven_stages)
    return refuse(Constraint::software_stack,
                  fmt::format("{} layers % {} = {} and the stack \"{}\" has no uneven stages", layers_,
                              product, layers_ % stages, stack_.name));
  return std::nullopt;
}

MaybeRefusal Legality::data(std::int64_t degree) const {
  if (auto refusal = positive("data", degree)) return refusal;
  if (auto refusal =
          divides(experiment_.training.global_batch, "sequences", degree, "data", Constraint::batch_shape))
    return refusal;
  return restricted("data", experiment_.search.data, degree);
}

MaybeRefusal Legality::experts(const MeshDegrees& mesh) const {
  if (auto refusal = positive("expert", mesh.expert)) return refusal;
  if (auto refusal = positive("expert_tensor", mesh.expert_tensor)) return refusal;
  const auto shape = Constraint::model_shape;
  if (!experiment_.model.mixture) {
    if (mesh.expert > 1 || mesh.expert_tensor > 1)
      return refuse(shape, fmt::format("expert {} · expert_tensor {} for a model without experts",
                                       mesh.expert, mesh.expert_tensor));
  } else {
    const specs::MixtureSpec& mixture = *experiment_.model.mixture;
    if (mesh.expert > 1 && !stack_.expert_parallel) return unsupported(stack_, "expert parallelism");
    if (mesh.expert_tensor != mesh.tensor && mesh.expert_tensor != 1 && !stack_.expert_tensor_parallel)
      return unsupported(stack_, "tensor degree of its own inside an expert");
    if (auto refusal = divides(mixture.experts, "experts", mesh.expert, "expert", shape)) return refusal;
    if (auto refusal =
            divides(mixture.expert_hidden, "expert width", mesh.expert_tensor, "expert_tensor", shape))
      return refusal;
    const std::int64_t ranks = mesh.tensor * mesh.context * mesh.data;
    if (auto refusal = divides(ranks, "ranks of a stage", mesh.expert * mesh.expert_tensor,
                               "expert · expert_tensor =", Constraint::device_count))
      return refusal;
  }
  if (auto refusal = restricted("expert", experiment_.search.expert, mesh.expert)) return refusal;
  return restricted("expert_tensor", experiment_.search.expert_tensor, mesh.expert_tensor);
}

MaybeRefusal Legality::micro_batch(const MeshDegrees& mesh, std::int64_t micro_batch) const {
  if (auto refusal = positive("micro_batch", micro_batch)) return refusal;
  const std::int64_t share = experiment_.training.global_batch / mesh.data;
  if (auto refusal =
          divides(share, "sequences of a replica", micro_batch, "micro_batch", Constraint::batch_shape))
    return refusal;
  return restricted("micro_batch", experiment_.search.micro_batch, micro_batch);
}

MaybeRefusal Legality::micro_batch_group(const MeshDegrees& mesh, std::int64_t accumulation,
                                         std::int64_t group) const {
  const std::vector<std::int64_t>& named = experiment_.search.micro_batch_group;
  if (group == 0) {
    if (allowed(named, group) || contains(named, mesh.pipeline)) return std::nullopt;
    return restricted("micro_batch_group", named, group);
  }
  if (!stack_.micro_batch_groups) return unsupported(stack_, "groups of micro-batches of its own");
  if (group == mesh.pipeline)
    return refuse(
        Constraint::schedule_shape,
        fmt::format("micro_batch_group {} is the number of pipeline ranks, which 0 stands for", group));
  if (group > accumulation)
    return refuse(Constraint::batch_shape,
                  fmt::format("micro_batch_group {} of {} micro-batches", group, accumulation));
  if (contains(named, group)) return std::nullopt;
  return refuse(Constraint::search_restriction,
                fmt::format("micro_batch_group = {} is not named in [search] micro_batch_group", group));
}

MaybeRefusal Legality::schedule(const MeshDegrees& mesh, std::int64_t accumulation, specs::ScheduleKind kind,
                                std::int64_t virtual_stages, std::int64_t micro_batch_group) const {
  if (mesh.pipeline == 1) {
    if (kind == specs::ScheduleKind::one_forward_one_backward && virtual_stages == 1 &&
        micro_batch_group == 0)
      return std::nullopt;
    return refuse(Constraint::schedule_shape, "without a pipeline the schedule is 1f1b with one stage");
  }
  if (!contains(stack_.schedules, kind))
    return unsupported(stack_, fmt::format("schedule \"{}\"", name_of(kind)));
  if (auto refusal = this->virtual_stages(mesh, virtual_stages)) return refusal;
  if (std::string reason =
          specs::schedule_refusal(kind, mesh.pipeline, virtual_stages, accumulation, micro_batch_group);
      !reason.empty())
    return refuse(Constraint::schedule_shape, std::move(reason));
  if (kind == specs::ScheduleKind::interleaved)
    if (auto refusal = this->micro_batch_group(mesh, accumulation, micro_batch_group)) return refusal;
  if (auto refusal = restricted_name("schedule", experiment_.search.schedule, kind)) return refusal;
  return restricted("virtual_stages", experiment_.search.virtual_stages, virtual_stages);
}

MaybeRefusal Legality::positions_over_tensor(const MeshDegrees& mesh) const {
  return divides(experiment_.training.sequence_length / mesh.context, "positions of a rank", mesh.tensor,
                 "tensor", Constraint::batch_shape);
}

MaybeRefusal Legality::sequence_parallel(const MeshDegrees& mesh, bool on) const {
  if (mesh.tensor == 1) {
    if (!on) return std::nullopt;
    return refuse(Constraint::model_shape, "sequence parallelism has no effect with tensor 1");
  }
  if (on) {
    if (!stack_.sequence_parallel) return unsupported(stack_, "sequence parallelism");
    if (auto refusal = positions_over_tensor(mesh)) return refusal;
  }
  if (allowed(experiment_.search.sequence_parallel, on)) return std::nullopt;
  return refuse(Constraint::search_restriction,
                fmt::format("sequence_parallel = {} is not in [search] sequence_parallel = [{}]", on, !on));
}

namespace {

/// The axes above 1 in their order.
std::vector<specs::MeshAxis> visible_order(const MeshDegrees& mesh, const specs::AxisOrder& order) {
  std::vector<specs::MeshAxis> visible;
  for (const specs::MeshAxis axis : order)
    if (degree_of(mesh, axis) > 1) visible.push_back(axis);
  return visible;
}

}  // namespace

std::vector<specs::AxisOrder> Legality::axis_orders(const MeshDegrees& mesh) const {
  std::vector<specs::AxisOrder> orders;
  std::vector<std::vector<specs::MeshAxis>> seen;
  for (const std::string& name : stack_.axis_orders) {
    if (!allowed(experiment_.search.axis_order, name)) continue;
    const std::optional<specs::AxisOrder> order = specs::axis_order_from(name);
    if (!order) continue;
    // Groups of nodes are ranges of ranks, which other orders of the axes would scatter over the stages.
    if (is_mixed(experiment_.cluster) && *order != specs::default_axis_order) continue;
    std::vector<specs::MeshAxis> visible = visible_order(mesh, *order);
    if (contains(seen, visible)) continue;
    seen.push_back(std::move(visible));
    orders.push_back(*order);
  }
  return orders;
}

MaybeRefusal Legality::groups(const MeshDegrees& mesh) const {
  if (!is_mixed(experiment_.cluster)) return std::nullopt;
  const GroupLayouts layouts(experiment_);
  const std::int64_t rank = mesh.tensor * mesh.context * mesh.data;
  const std::int64_t replica = mesh.tensor * mesh.context * mesh.pipeline;
  if (mesh.pipeline > 1 && layouts.ranks_lie_in_groups(rank)) return std::nullopt;
  if (layouts.replicas_lie_in_groups(replica)) return std::nullopt;
  std::vector<std::int64_t> devices;
  for (std::size_t group = 0; group < layouts.groups(); ++group) devices.push_back(layouts.devices(group));
  return refuse(
      Constraint::device_count,
      fmt::format("neither a pipeline rank of tensor · context · data = {} devices nor a replica of "
                  "tensor · context · pipeline = {} lies on nodes of one kind: there are {} devices",
                  rank, replica, fmt::join(devices, " and ")));
}

MaybeRefusal Legality::axis_order(const MeshDegrees& mesh, const specs::AxisOrder& order) const {
  const std::string name = specs::to_string(order);
  if (!contains(stack_.axis_orders, name)) return unsupported(stack_, fmt::format("axis order \"{}\"", name));
  const std::vector<std::string>& restriction = experiment_.search.axis_order;
  if (!allowed(restriction, name))
    return refuse(Constraint::search_restriction,
                  fmt::format("axis_order = \"{}\" is not in [search] axis_order = [{}]", name,
                              fmt::join(restriction, ", ")));
  if (contains(axis_orders(mesh), order)) return std::nullopt;
  return refuse(Constraint::device_count,
                fmt::format("axis order \"{}\" lays this mesh out as an earlier one does", name));
}

MaybeRefusal Legality::local_steps(const MeshDegrees& mesh, const specs::ZeroTreatment& zero,
                                   std::int64_t steps) const {
  if (mesh.data == 1 || zero.stage > 0) {
    if (steps == 1) return std::nullopt;
    return refuse(Constraint::software_stack,
                  fmt::format("local_steps = {} needs replicas that share nothing: data {}, ZeRO {}", steps,
                              mesh.data, zero.stage));
  }
  if (steps > 1 && !stack_.local_steps) return unsupported(stack_, "local steps");
  return restricted("local_steps", experiment_.search.local_steps, steps);
}

MaybeRefusal Legality::placement(const specs::RegularPlacement& placement) const {
  const MeshDegrees mesh = mesh_of(placement);
  if (auto refusal = tensor(mesh.tensor)) return refusal;
  if (auto refusal = context(mesh.context)) return refusal;
  if (auto refusal = pipeline(mesh.pipeline)) return refusal;
  if (auto refusal = data(mesh.data)) return refusal;
  if (auto refusal = experts(mesh)) return refusal;
  if (auto refusal = groups(mesh)) return refusal;
  if (auto refusal = micro_batch(mesh, placement.micro_batch)) return refusal;
  const std::int64_t replica = placement.micro_batch * placement.accumulation;
  if (replica * mesh.data != experiment_.training.global_batch)
    return refuse(Constraint::batch_shape,
                  fmt::format("micro_batch {} · accumulation {} · data {} = {}, not the batch of {}",
                              placement.micro_batch, placement.accumulation, mesh.data, replica * mesh.data,
                              experiment_.training.global_batch));
  if (auto refusal = schedule(mesh, placement.accumulation, placement.schedule, placement.virtual_stages,
                              placement.micro_batch_group))
    return refusal;
  if (auto refusal = modules(mesh, placement.modules)) return refusal;
  if (auto refusal = sequence_parallel(mesh, placement.sequence_parallel)) return refusal;
  if (auto refusal = recomputation(placement.recomputation)) return refusal;
  if (auto refusal = zero(mesh, placement.zero)) return refusal;
  if (auto refusal = offload(mesh, placement.offload, placement.zero)) return refusal;
  if (auto refusal = delayed_update(placement.offload)) return refusal;
  if (auto refusal = axis_order(mesh, placement.order)) return refusal;
  return local_steps(mesh, placement.zero, placement.local_steps);
}

}  // namespace planner
