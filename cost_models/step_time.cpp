#include "cost_models/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace cost_models {

namespace {

/// Where the pipeline ranks of all replicas lie: `stride` devices each, one pipeline after the other.
struct PipelineDevices {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  std::int64_t replicas = 1;

  /// Whether any device of pipeline rank `rank` and its neighbour in the next one (in the first, after the
  /// last) lie in different groups of `devices`: whether such a group ends between the first device of the
  /// one and the last of the other.
  bool cross(std::int64_t rank, std::int64_t devices) const {
    const std::int64_t length = rank + 1 < ranks ? 2 * stride : ranks * stride;
    const std::int64_t begin = rank + 1 < ranks ? rank * stride : 0;
    const std::int64_t pipeline = ranks * stride;
    const std::int64_t unlike = std::min(replicas, devices / std::gcd(pipeline, devices));
    constexpr std::int64_t most_looked_at = 64;  // some of more are cut
    if (unlike > most_looked_at) return true;
    for (std::int64_t replica = 0; replica < unlike; ++replica) {
      const std::int64_t first = replica * pipeline + begin;
      if (first / devices != (first + length - 1) / devices) return true;
    }
    return false;
  }
};

}  // namespace

Transfers boundary_transfers(const CostInputs& inputs, const ShardKey& shards, double micro_batch,
                             double tensor) {
  const LinkRates& links = inputs.links.pipeline;
  const double stride = axis_stride(shards.order, specs::MeshAxis::pipeline, shards.tensor, shards.context,
                                    shards.data, shards.pipeline);
  // Each rank of the tensor axis sends its slice; the receiver gathers inside the node.
  const double bytes = inputs.element_bytes * micro_batch * inputs.sizes.sequence / shards.context *
                       inputs.sizes.hidden / tensor;
  const auto seconds = [&](double apart) {
    return inputs.exposed.pipeline * collective_seconds(Collective::send_receive, bytes,
                                                        rank_group(2, apart, links.domain_devices), links)
                                         .total();
  };
  const double replicas = shards.tensor * shards.context * shards.data / stride;
  // Whole pipelines lie in one domain, or no two neighbours do.
  const double pipeline = stride * shards.pipeline;
  const double domain = links.domain_devices;
  if ((stride >= domain && links.tiers.empty()) || (pipeline <= domain && std::fmod(domain, pipeline) == 0))
    return Transfers(seconds(stride));
  const auto whole = [](double number) { return static_cast<std::int64_t>(number); };
  const PipelineDevices devices{whole(shards.pipeline), whole(stride), whole(replicas)};
  const double between = seconds(domain), inside = seconds(0.5);
  std::vector<double> across;
  for (const NetworkTier& tier : links.tiers) across.push_back(seconds(tier.devices));
  std::vector<double> after_rank;
  after_rank.reserve(static_cast<std::size_t>(devices.ranks));
  for (std::int64_t rank = 0; rank < devices.ranks; ++rank) {
    double found = devices.cross(rank, whole(domain)) ? between : inside;
    for (std::size_t tier = 0; tier < across.size(); ++tier)
      if (devices.cross(rank, whole(links.tiers[tier].devices))) found = across[tier];
    after_rank.push_back(found);
  }
  return Transfers(std::move(after_rank));
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
  longest.gradient_reduction = longest.delayed = 0;
  return longest;
}

/// The host of every rank ends one update in each step.
double longest_delayed(std::span<const StepEndSeconds> ends) {
  double longest = 0;
  for (const StepEndSeconds& end : ends) longest = std::max(longest, end.delayed);
  return longest;
}

}  // namespace

double step_seconds(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                    const ScheduleOrders& orders) {
  const std::vector<double> after = reductions(parts.ends);
  return std::max(pipeline_seconds(shape.pipeline, {parts.stages, parts.transfers, after}, orders) +
                      longest_update(parts.ends).update() + fixed_seconds(inputs, shape),
                  longest_delayed(parts.ends));
}

double step_lower_bound(const CostInputs& inputs, const StepShape& shape, const StepParts& parts) {
  const std::vector<double> after = reductions(parts.ends);
  return std::max(pipeline_lower_bound(shape.pipeline, {parts.stages, parts.transfers, after}) +
                      longest_update(parts.ends).update() + fixed_seconds(inputs, shape),
                  longest_delayed(parts.ends));
}

double step_lower_bound(const CostInputs& inputs, const StepShape& shape, std::span<const AlikeRanks> ranks,
                        std::span<const StepEndSeconds> ends, const Transfers& transfers) {
  return std::max(pipeline_lower_bound(shape.pipeline, ranks, transfers) + longest_update(ends).update() +
                      fixed_seconds(inputs, shape),
                  longest_delayed(ends));
}

StepSeconds step_account(const CostInputs& inputs, const StepShape& shape, const StepParts& parts,
                         std::size_t slowest, const ScheduleOrders& orders) {
  const std::vector<double> after = reductions(parts.ends);
  const auto [whole, without] =
      pipeline_seconds_without_transfers_too(shape.pipeline, {parts.stages, parts.transfers, after}, orders);
  StepSeconds step;
  step.work = shape.pipeline.micro_batches * slowest_rank_seconds(shape.pipeline, parts.stages);
  step.end = longest_update(parts.ends);
  step.end.gradient_reduction = parts.ends[slowest].gradient_reduction;
  step.fixed = fixed_seconds(inputs, shape);
  step.late_update = std::max(0.0, longest_delayed(parts.ends) - whole - step.end.update() - step.fixed);
  step.end.optimizer_update += step.late_update;
  if (shape.pipeline.ranks <= 1) return step;
  step.transfer = std::max(0.0, whole - without);
  step.bubble = whole - step.transfer - step.work - step.end.gradient_reduction;
  return step;
}

}  // namespace cost_models
