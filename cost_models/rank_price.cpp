#include "cost_models/rank_price.h"

#include <algorithm>

#include "cost_models/offload.h"

namespace cost_models {
namespace {

bool alike(const StageRun& a, const StageRun& b) { return a.counts == b.counts; }
bool alike(const RankRun& a, const RankRun& b) { return a.counts == b.counts && a.chunks == b.chunks; }

template <class Run>
void extend(std::vector<Run>& runs, const Run& next, std::int64_t Run::*length) {
  if (!runs.empty() && alike(runs.back(), next))
    ++(runs.back().*length);
  else
    runs.push_back(next);
}

void add_stage(const std::vector<StageRun>& runs, const UnitCounts& counts, RankRun& rank) {
  const auto alike =
      std::find_if(runs.begin(), runs.end(), [&](const StageRun& run) { return run.counts == counts; });
  const auto run = static_cast<std::size_t>(alike - runs.begin());
  const auto known = std::find_if(rank.stages.begin(), rank.stages.end(),
                                  [&](const RankRun::Stages& stages) { return stages.run == run; });
  if (known == rank.stages.end())
    rank.stages.push_back({run, 1});
  else
    ++known->stages;
}

// ZeRO-3 gathers what it offloads once in each direction of a micro-batch, ahead of its use: each rank
// brings its shard in from the host or the drive meanwhile.
void fetch_parameters(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                      const ShardKey& shards, StageSeconds& seconds, TermSeconds* terms) {
  const specs::OffloadTreatment& offload = shards.offload.parameters;
  if (offload.device == specs::OffloadDevice::none || shards.zero.stage < 3) return;
  const RankParameters parameters = stage_parameters(costs, counts, inputs.model.tied_embeddings);
  const double owned = static_cast<double>(parameters.dense) / shards.dense_shards(inputs.devices_per_node) +
                       static_cast<double>(parameters.expert) / shards.expert_shards(inputs.devices_per_node);
  const double drive = offload.device == specs::OffloadDevice::nvme
                           ? inputs.nvme_read_bytes_per_second / inputs.devices_per_node
                           : 0;
  const double fetch =
      parameter_fetch_seconds(owned * static_cast<double>(offload.eighths) / 8 * inputs.element_bytes,
                              inputs.host_link_bytes_per_second, drive);
  const double waits = std::max(0.0, fetch - seconds.forward) + std::max(0.0, fetch - seconds.backward);
  seconds.forward = std::max(seconds.forward, fetch);
  seconds.backward = std::max(seconds.backward, fetch);
  if (terms != nullptr) at(*terms, specs::TimeTerm::offload_transfer) += waits;
}

}  // namespace

PipelineCut pipeline_cut(const specs::ModelSpec& model, const specs::Placement& placement) {
  PipelineCut cut;
  std::vector<RankRun> of_rank(static_cast<std::size_t>(placement.pipeline_ranks()));
  for (const specs::PipelineStage& stage : placement.stages) {
    const UnitCounts counts = unit_counts(model, stage);
    RankRun& rank = of_rank.at(static_cast<std::size_t>(stage.pipeline_rank));
    rank.counts += counts;
    rank.first_rank = stage.pipeline_rank;
    if (placement.virtual_stages > 1) rank.chunks.push_back(counts);
    extend(cut.stages, {counts, 1}, &StageRun::stages);
    add_stage(cut.stages, counts, rank);
  }
  for (const RankRun& rank : of_rank) extend(cut.ranks, rank, &RankRun::ranks);
  return cut;
}

StageSeconds placed_stage_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                                  const ShardKey& shards, double micro_batch, TermSeconds* terms) {
  UnitCounts priced = counts;
  if (inputs.profile.options.layers_only) priced.embedding = priced.output = false;
  StageSeconds seconds = stage_seconds(inputs, costs, priced, shards, terms);
  const specs::OffloadTreatment& activations = shards.offload.activations;
  if (activations.device != specs::OffloadDevice::none && activations.eighths > 0) {
    const double layers = counts.attentions() * static_cast<double>(activations.eighths) / 8;
    const double tokens = micro_batch * inputs.sizes.sequence / shards.context;
    // About 34 bytes a token and hidden element leave the device in the forward pass and come back.
    const double bytes = layers * tokens * inputs.sizes.hidden * 34 / shards.tensor;
    const double exposed = inputs.activation_offload_exposed * bytes / inputs.host_link_bytes_per_second;
    seconds.forward += exposed;
    seconds.backward += exposed;
    if (terms != nullptr) at(*terms, specs::TimeTerm::offload_transfer) += 2 * exposed;
  }
  fetch_parameters(inputs, costs, counts, shards, seconds, terms);
  return seconds;
}

StepEndSeconds rank_end_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                                const ShardKey& shards) {
  if (inputs.profile.options.layers_only) return {};
  return step_end_seconds(inputs, stage_parameters(costs, counts, inputs.model.tied_embeddings), shards);
}

RankLoad rank_load(const JobShape& job, const LayerCosts& costs, const UnitCounts& counts,
                   const ShardKey& shards, std::int64_t pipeline_rank, const ModuleSplit& split,
                   bool tied_embeddings) {
  RankLoad load;
  load.counts = counts;
  load.parameters = stage_parameters(costs, counts, tied_embeddings);
  load.shards = shards;
  load.pipeline = job.step.pipeline;
  load.pipeline_rank = static_cast<double>(pipeline_rank);
  load.micro_batch = static_cast<double>(job.micro_batch);
  load.split = split;
  load.sequence_parallel = job.sequence_parallel;
  return load;
}

namespace {

void set_strides(const specs::AxisOrder& order, double data, double pipeline, LayerKey& key) {
  const auto stride = [&](specs::MeshAxis axis) {
    return static_cast<std::int64_t>(axis_stride(order, axis, static_cast<double>(key.tensor),
                                                 static_cast<double>(key.context), data, pipeline));
  };
  if (key.tensor > 1) key.tensor_stride = stride(specs::MeshAxis::tensor);
  if (key.context > 1) key.context_stride = stride(specs::MeshAxis::context);
}

}  // namespace

LayerKey layer_key(const specs::RegularPlacement& placement) {
  LayerKey key;
  key.tensor = placement.tensor;
  key.context = placement.context;
  key.expert = placement.expert;
  key.expert_tensor = placement.expert_tensor;
  key.micro_batch = placement.micro_batch;
  key.modules = placement.modules;
  set_strides(placement.order, static_cast<double>(placement.data), static_cast<double>(placement.pipeline),
              key);
  key.sequence_parallel = placement.sequence_parallel && placement.tensor > 1;
  key.accumulates = placement.accumulation > 1;
  return key;
}

LayerKey layer_key(const specs::Placement& placement, const specs::PipelineStage& stage) {
  LayerKey key;
  key.tensor = stage.mesh.tensor;
  key.context = stage.mesh.context;
  key.expert = stage.mesh.expert;
  key.expert_tensor = stage.mesh.expert_tensor;
  key.micro_batch = placement.micro_batch;
  key.modules = stage.modules;
  set_strides(stage.mesh.order, static_cast<double>(stage.mesh.data),
              static_cast<double>(placement.pipeline_ranks()), key);
  key.sequence_parallel = placement.sequence_parallel && stage.mesh.tensor > 1;
  key.accumulates = placement.accumulation > 1;
  return key;
}

ShardKey shard_key(const specs::RegularPlacement& placement) {
  ShardKey key;
  key.tensor = static_cast<double>(placement.tensor);
  key.context = static_cast<double>(placement.context);
  key.data = static_cast<double>(placement.data);
  key.pipeline = static_cast<double>(placement.pipeline);
  key.expert = static_cast<double>(placement.expert);
  key.expert_tensor = static_cast<double>(placement.expert_tensor);
  key.order = placement.order;
  key.zero = placement.zero;
  key.offload = placement.offload;
  key.gradient_bucket_bytes = static_cast<double>(placement.buckets.gradient_bucket_bytes);
  key.gather_bucket_bytes = static_cast<double>(placement.buckets.gather_bucket_bytes);
  key.local_steps = static_cast<double>(placement.local_steps);
  key.minimum_message_bytes = static_cast<double>(placement.buckets.minimum_message_bytes);
  key.prefetch_units = static_cast<double>(placement.buckets.prefetch_units);
  return key;
}

ShardKey shard_key(const specs::Placement& placement, const specs::PipelineStage& stage) {
  ShardKey key;
  key.tensor = static_cast<double>(stage.mesh.tensor);
  key.context = static_cast<double>(stage.mesh.context);
  key.data = static_cast<double>(stage.mesh.data);
  key.pipeline = static_cast<double>(placement.pipeline_ranks());
  key.expert = static_cast<double>(stage.mesh.expert);
  key.expert_tensor = static_cast<double>(stage.mesh.expert_tensor);
  key.order = stage.mesh.order;
  key.zero = stage.zero;
  key.offload = stage.offload;
  key.gradient_bucket_bytes = static_cast<double>(placement.buckets.gradient_bucket_bytes);
  key.gather_bucket_bytes = static_cast<double>(placement.buckets.gather_bucket_bytes);
  key.minimum_message_bytes = static_cast<double>(placement.buckets.minimum_message_bytes);
  key.prefetch_units = static_cast<double>(placement.buckets.prefetch_units);
  key.local_steps = static_cast<double>(std::max<std::int64_t>(1, placement.local_steps));
  return key;
}

JobShape job_shape(const CostInputs& inputs, const specs::RegularPlacement& placement) {
  JobShape job;
  job.step.pipeline = {static_cast<double>(placement.pipeline), static_cast<double>(placement.virtual_stages),
                       static_cast<double>(placement.accumulation), placement.micro_batch_group,
                       placement.schedule};
  job.step.tensor = static_cast<double>(placement.tensor);
  job.micro_batch = placement.micro_batch;
  job.sequence_parallel = placement.sequence_parallel && placement.tensor > 1;
  if (placement.pipeline > 1)
    job.transfers = boundary_transfers(inputs, shard_key(placement),
                                       static_cast<double>(placement.micro_batch), job.step.tensor);
  return job;
}

JobShape job_shape(const CostInputs& inputs, const specs::Placement& placement) {
  JobShape job;
  std::int64_t micro_batches = placement.accumulation;
  if (!placement.replica_shares.empty()) {
    micro_batches = 0;
    for (const specs::ReplicaShare& share : placement.replica_shares)
      micro_batches = std::max(micro_batches, share.micro_batches);
  }
  const specs::PipelineStage& first = placement.stages.front();
  job.step.pipeline = {static_cast<double>(placement.pipeline_ranks()),
                       static_cast<double>(placement.virtual_stages), static_cast<double>(micro_batches),
                       placement.micro_batch_group, placement.schedule};
  for (const specs::PipelineStage& stage : placement.stages)
    job.step.tensor = std::max(job.step.tensor, static_cast<double>(stage.mesh.tensor));
  job.micro_batch = placement.micro_batch;
  job.sequence_parallel = placement.sequence_parallel && job.step.tensor > 1;
  if (placement.pipeline_ranks() > 1)
    job.transfers = boundary_transfers(inputs, shard_key(placement, first),
                                       static_cast<double>(placement.micro_batch), job.step.tensor);
  return job;
}

namespace {

struct RegularParts {
  std::vector<StepEndSeconds> ends;
  std::vector<StageSeconds> stages;
  std::vector<double> transfers;
  StepParts view() const { return {stages, transfers, ends}; }
};

RegularParts regular_parts(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                           const ShardKey& shards, const PipelineCut& cut) {
  RegularParts parts;
  for (const RankRun& run : cut.ranks)
    parts.ends.insert(parts.ends.end(), static_cast<std::size_t>(run.ranks),
                      rank_end_seconds(inputs, costs, run.counts, shards));
  parts.stages.reserve(static_cast<std::size_t>(job.step.pipeline.ranks * job.step.pipeline.virtual_stages));
  for (const StageRun& run : cut.stages)
    parts.stages.insert(
        parts.stages.end(), static_cast<std::size_t>(run.stages),
        placed_stage_seconds(inputs, costs, run.counts, shards, static_cast<double>(job.micro_batch)));
  balance_stages(inputs, parts.stages);
  parts.transfers = job.transfers.between_stages(job.step.pipeline);
  return parts;
}

}  // namespace

double regular_step_seconds(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                            const ShardKey& shards, const PipelineCut& cut, const ScheduleOrders& orders) {
  return step_seconds(inputs, job.step, regular_parts(inputs, costs, job, shards, cut).view(), orders);
}

double regular_step_bound(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                          const ShardKey& shards, const PipelineCut& cut) {
  if (inputs.profile.options.balanced_stages || job.step.pipeline.schedule == specs::ScheduleKind::gpipe)
    return step_lower_bound(inputs, job.step, regular_parts(inputs, costs, job, shards, cut).view());
  std::vector<StageSeconds> seconds;
  seconds.reserve(cut.stages.size());
  for (const StageRun& run : cut.stages)
    seconds.push_back(
        placed_stage_seconds(inputs, costs, run.counts, shards, static_cast<double>(job.micro_batch)));
  std::vector<AlikeRanks> ranks;
  ranks.reserve(cut.ranks.size());
  std::vector<StepEndSeconds> ends;
  ends.reserve(cut.ranks.size());
  for (const RankRun& run : cut.ranks) {
    ends.push_back(rank_end_seconds(inputs, costs, run.counts, shards));
    AlikeRanks alike{run.ranks, seconds[run.stages.front().run], 0, ends.back().gradient_reduction};
    for (const RankRun::Stages& stages : run.stages)
      alike.micro_batch += stages.stages * seconds[stages.run].total();
    ranks.push_back(alike);
  }
  return step_lower_bound(inputs, job.step, ranks, ends, job.transfers);
}

}  // namespace cost_models
