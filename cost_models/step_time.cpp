#include "cost_models/step_time.h"

namespace cost_models {

double boundary_seconds(const CostInputs& inputs, const ShardKey& shards, double micro_batch, double tensor,
                        double virtual_stages) {
  const double stride =
      axis_stride(shards.order, specs::MeshAxis::pipeline, shards.tensor, shards.context, shards.data);
  const RankGroup pair = rank_group(2, stride, inputs.links.pipeline.domain_devices);
  // Each rank of the tensor axis sends its slice; the receiver gathers inside the node.
  const double bytes = inputs.element_bytes * micro_batch * inputs.sizes.sequence / shards.context *
                       inputs.sizes.hidden / tensor;
  const double one = collective_seconds(Collective::send_receive, bytes, pair, inputs.links.pipeline).total();
  return 2 * virtual_stages * one * inputs.exposed.pipeline;
}

StepSeconds step_seconds(const CostInputs& inputs, const StepShape& shape,
                         std::span<const RankSeconds> ranks) {
  StepSeconds step;
  double slowest = 0;
  double sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    sum += ranks[i].micro_batch * ranks[i].ranks;
    if (ranks[i].micro_batch > slowest) {
      slowest = ranks[i].micro_batch;
      step.slowest = i;
    }
    if (ranks[i].end.total() > step.end.total()) step.end = ranks[i].end;
  }
  // What is left of the imbalance after a cut by hand at whole layers.
  constexpr double balanced_imbalance = 1.02;
  if (inputs.profile.options.balanced_stages && shape.pipeline.ranks > 1)
    slowest = balanced_imbalance * sum / shape.pipeline.ranks;
  step.pipeline = pipeline_seconds(shape.pipeline, slowest, sum, shape.transfer_seconds);
  step.fixed = inputs.fixed_seconds +
               (shape.tensor > 1 ? inputs.tensor_micro_batch_seconds * shape.pipeline.micro_batches : 0);
  return step;
}

}  // namespace cost_models
