#include "cost_models/rank_price.h"

#include <algorithm>
#include <array>

namespace cost_models {
std::vector<RankRun> rank_runs(const specs::ModelSpec& model, const specs::Placement& placement) {
  std::vector<UnitCounts> of_rank(static_cast<std::size_t>(placement.pipeline_ranks()));
  for (const specs::PipelineStage& stage : placement.stages)
    of_rank.at(static_cast<std::size_t>(stage.pipeline_rank)) += unit_counts(model, stage);
  std::vector<RankRun> runs;
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (!runs.empty() && runs.back().counts == of_rank[rank])
      ++runs.back().ranks;
    else
      runs.push_back({of_rank[rank], static_cast<std::int64_t>(rank), 1});
  }
  return runs;
}

RankSeconds rank_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                         const ShardKey& shards, double micro_batch, TermSeconds* terms) {
  RankSeconds seconds;
  const bool bare = inputs.profile.options.layers_only;
  UnitCounts priced = counts;
  if (bare) priced.embedding = priced.output = false;
  seconds.micro_batch = stage_seconds(inputs, costs, priced, shards, terms).total();
  const specs::OffloadTreatment& activations = shards.offload.activations;
  if (activations.device != specs::OffloadDevice::none && activations.eighths > 0) {
    const double layers = counts.attentions() * static_cast<double>(activations.eighths) / 8;
    const double tokens = micro_batch * inputs.sizes.sequence / shards.context;
    // About 34 bytes a token and hidden element leave the device and come back.
    const double bytes = 2 * layers * tokens * inputs.sizes.hidden * 34 / shards.tensor;
    const double exposed = inputs.activation_offload_exposed * bytes / inputs.host_link_bytes_per_second;
    seconds.micro_batch += exposed;
    if (terms != nullptr) at(*terms, specs::TimeTerm::offload_transfer) += exposed;
  }
  if (!bare)
    seconds.end =
        step_end_seconds(inputs, stage_parameters(costs, counts, inputs.model.tied_embeddings), shards);
  return seconds;
}

RankLoad rank_load(const JobShape& job, const LayerCosts& costs, const UnitCounts& counts,
                   const ShardKey& shards, std::int64_t pipeline_rank, std::int64_t output_tensor,
                   bool tied_embeddings) {
  RankLoad load;
  load.counts = counts;
  load.parameters = stage_parameters(costs, counts, tied_embeddings);
  load.shards = shards;
  load.pipeline = job.step.pipeline;
  load.pipeline_rank = static_cast<double>(pipeline_rank);
  load.micro_batch = static_cast<double>(job.micro_batch);
  load.tensor = job.step.tensor;
  load.output_tensor = static_cast<double>(output_tensor);
  load.sequence_parallel = job.sequence_parallel;
  return load;
}

LayerKey layer_key(const specs::RegularPlacement& placement) {
  LayerKey key;
  key.tensor = placement.tensor;
  key.context = placement.context;
  key.expert = placement.expert;
  key.expert_tensor = placement.expert_tensor;
  key.micro_batch = placement.micro_batch;
  key.order = placement.order;
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
  key.order = stage.mesh.order;
  key.sequence_parallel = placement.sequence_parallel && stage.mesh.tensor > 1;
  key.accumulates = placement.accumulation > 1;
  return key;
}

ShardKey shard_key(const specs::RegularPlacement& placement) {
  ShardKey key;
  key.tensor = static_cast<double>(placement.tensor);
  key.context = static_cast<double>(placement.context);
  key.data = static_cast<double>(placement.data);
  key.expert = static_cast<double>(placement.expert);
  key.expert_tensor = static_cast<double>(placement.expert_tensor);
  key.order = placement.order;
  key.zero = placement.zero;
  key.offload = placement.offload;
  key.gradient_bucket_bytes = static_cast<double>(placement.buckets.gradient_bucket_bytes);
  return key;
}

ShardKey shard_key(const specs::Placement& placement, const specs::PipelineStage& stage) {
  ShardKey key;
  key.tensor = static_cast<double>(stage.mesh.tensor);
  key.context = static_cast<double>(stage.mesh.context);
  key.data = static_cast<double>(stage.mesh.data);
  key.expert = static_cast<double>(stage.mesh.expert);
  key.expert_tensor = static_cast<double>(stage.mesh.expert_tensor);
  key.order = stage.mesh.order;
  key.zero = stage.zero;
  key.offload = stage.offload;
  key.gradient_bucket_bytes = static_cast<double>(placement.buckets.gradient_bucket_bytes);
  key.local_steps = static_cast<double>(std::max<std::int64_t>(1, placement.local_steps));
  return key;
}

JobShape job_shape(const CostInputs& inputs, const specs::RegularPlacement& placement) {
  JobShape job;
  job.step.pipeline = {static_cast<double>(placement.pipeline), static_cast<double>(placement.virtual_stages),
                       static_cast<double>(placement.accumulation), 0, placement.schedule};
  job.step.tensor = static_cast<double>(placement.tensor);
  job.micro_batch = placement.micro_batch;
  job.sequence_parallel = placement.sequence_parallel && placement.tensor > 1;
  if (placement.pipeline > 1)
    job.step.transfer_seconds =
        boundary_seconds(inputs, shard_key(placement), static_cast<double>(placement.micro_batch),
                         job.step.tensor, job.step.pipeline.virtual_stages);
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
    job.step.transfer_seconds =
        boundary_seconds(inputs, shard_key(placement, first), static_cast<double>(placement.micro_batch),
                         job.step.tensor, job.step.pipeline.virtual_stages);
  return job;
}

double regular_step_seconds(const CostInputs& inputs, const LayerCosts& costs, const JobShape& job,
                            const ShardKey& shards, std::span<const RankRun> runs) {
  constexpr std::size_t most_runs = 16;
  std::array<RankSeconds, most_runs> seconds;
  const std::size_t count = std::min(runs.size(), most_runs);
  for (std::size_t i = 0; i < count; ++i) {
    seconds[i] = rank_seconds(inputs, costs, runs[i].counts, shards, static_cast<double>(job.micro_batch));
    seconds[i].ranks = static_cast<double>(runs[i].ranks);
  }
  return step_seconds(inputs, job.step, std::span(seconds.data(), count)).total();
}

}  // namespace cost_models
