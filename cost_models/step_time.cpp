#include "cost_models/step_time.h"

#include <algorithm>
#include <vector>

namespace cost_models {

double boundary_seconds(const CostInputs& inputs, const ShardKey& shards, double micro_batch, double tensor) {
  const double stride = axis_stride(shards.order, specs::MeshAxis::pipeline, shards.tensor, shards.context,
                                    shards.data, shards.pipeline);
  const RankGroup pair = rank_group(2, stride, inputs.links.pipeline.domain_devices);
  // Each rank of the tensor axis sends its slice; the receiver gathers inside the node.
  const double bytes = inputs.element_bytes * micro_batch * inputs.sizes.sequence / shards.context *
                       inputs.sizes.hidden / tensor;
  return inputs.exposed.pipeline *
         collective_seconds(Collective::send_receive, bytes, pair, inputs.links.pipeline).total();
}

void balance_stages(const CostInputs& inputs, std::span<StageSeconds> stages) {
  if (!inputs.profile.options.balanced_stages || stages.size() <= 1) return;
  // What is left of the imbalance after a cut by hand at whole layers.
  constexpr double balanced_imbalance = 1.02;
  StageSeconds sum;
  for (const StageSeconds& stage : stages) {
    sum.forward += stage.forward;
    sum.backward += stage.backward;
    sum.weight_gradient += stage.weight_gradient;
  }
  const double share = balanced_imbalance / static_cast<double>(stages.size());
  for (StageSeconds& stage : stages)
    stage = {share * sum.forward, share * sum.backward, share * sum.weight_gradient};
}

double fixed_seconds(const CostInputs& inputs, const StepShape& shape) {
  return inputs.fixed_seconds +
         (shape.tensor > 1 ? inputs.tensor_micro_batch_seconds * shape.pipeline.micro_batches : 0);
}

namespace {

/// Gradients are reduced as soon as the rank has them; what follows starts when all ranks have theirs, since
/// the clipping norm needs every gradient.
std::vector<double> reductions(std::span<const StepEndSeconds> ends) {
  std::vector<double> seconds;
  seconds.reserve(ends.size());
  for (const StepEndSeconds& end : ends) seconds.push_back(end.gradient_reduction);
  return seconds;
}

StepEndSeconds longest_update(std::span<const StepEndSeconds> ends) {
  StepEndSeconds longest;
  for (const StepEndSeconds& end : ends)
    if (end.update() > longest.update()) longest = end;
  longest.gradient_reduction = 0;
  return longest;
}

}  // namespace

double step_seconds(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                    const ScheduleOrders& orders) {
  const std::vector<double> after = reductions(parts.ends);
  return pipeline_seconds(shape.pipeline, {parts.stages, parts.transfers, after}, orders) +
         longest_update(parts.ends).update() + fixed_seconds(inputs, shape);
}

double step_lower_bound(const CostInputs& inputs, const StepShape& shape, const StepParts& parts) {
  const std::vector<double> after = reductions(parts.ends);
  return pipeline_lower_bound(shape.pipeline, {parts.stages, parts.transfers, after}) +
         longest_update(parts.ends).update() + fixed_seconds(inputs, shape);
}

StepSeconds step_account(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                         std::size_t slowest, const ScheduleOrders& orders) {
  const std::vector<double> after = reductions(parts.ends);
  const double whole = pipeline_seconds(shape.pipeline, {parts.stages, parts.transfers, after}, orders);
  StepSeconds step;
  step.work = shape.pipeline.micro_batches * slowest_rank_seconds(shape.pipeline, parts.stages);
  step.end = longest_update(parts.ends);
  step.end.gradient_reduction = parts.ends[slowest].gradient_reduction;
  step.fixed = fixed_seconds(inputs, shape);
  if (shape.pipeline.ranks <= 1) return step;
  const std::vector<double> none(parts.transfers.size());
  const double without = pipeline_seconds(shape.pipeline, {parts.stages, none, after}, orders);
  step.transfer = std::max(0.0, whole - without);
  step.bubble = whole - step.transfer - step.work - step.end.gradient_reduction;
  return step;
}

}  // namespace cost_models
