#include "planner/lower_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/memory.h"
#include "cost_models/rank_price.h"

namespace planner {
namespace {

/// The ends of a list of choices: a formula that is monotone or linear in the share is least at one of them.
template <class Visit>
void for_ends(const std::vector<specs::OffloadTreatment>& choices, Visit&& visit) {
  if (choices.empty()) return;
  visit(choices.front());
  if (choices.size() > 1) visit(choices.back());
}

cost_models::ShardDegrees degrees_of(const MeshDegrees& mesh) {
  cost_models::ShardDegrees degrees;
  degrees.attention_tensor = degrees.feed_forward_tensor = mesh.tensor;
  degrees.embedding_tensor = degrees.output_tensor = mesh.tensor;
  degrees.expert = mesh.expert;
  degrees.expert_tensor = mesh.expert_tensor;
  return degrees;
}

/// β: of the units that there are, the embedding left out.
double least_backward_share(const cost_models::LayerCosts& costs, const cost_models::UnitCounts& counts) {
  double least = 1;
  const auto look_at = [&least](bool present, const cost_models::UnitCost& unit) {
    const double whole = unit.forward + unit.backward;
    if (present && whole > 0) least = std::min(least, unit.backward / whole);
  };
  look_at(cost_models::total(counts.encoder_attention) > 0, costs.encoder_attention);
  look_at(cost_models::total(counts.attention) > 0, costs.attention);
  look_at(counts.feed_forwards() > 0, costs.feed_forward);
  look_at(counts.mixtures() > 0, costs.mixture);
  look_at(counts.output, costs.output);
  return least;
}

/// An attention and its FFN, each of the quickest kind that there is.
double quickest_layer_seconds(const cost_models::LayerCosts& costs, const cost_models::UnitCounts& counts) {
  const auto quicker = [](bool present, const cost_models::UnitCost& unit, double otherwise) {
    return present ? std::min(otherwise, unit.forward + unit.backward) : otherwise;
  };
  const double none = std::numeric_limits<double>::infinity();
  double attention = quicker(cost_models::total(counts.attention) > 0, costs.attention, none);
  attention = quicker(cost_models::total(counts.encoder_attention) > 0, costs.encoder_attention, attention);
  double feed_forward = quicker(counts.feed_forwards() > 0, costs.feed_forward, none);
  feed_forward = quicker(counts.mixtures() > 0, costs.mixture, feed_forward);
  return attention + feed_forward;
}

/// 1 / Σ 1 / a_i of 1F1B.
double busiest_share(std::int64_t ranks, std::int64_t micro_batches, double backward_share) {
  double sum = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t ahead = std::min(ranks - rank, micro_batches);
    const double weight =
        static_cast<double>(micro_batches - ahead) + static_cast<double>(ahead - 1) * backward_share;
    if (weight <= 0) return 0;
    sum += 1 / weight;
  }
  return 1 / sum;
}

}  // namespace

MeshBounds::MeshBounds(const specs::Experiment& experiment, const Space& space,
                       const cost_models::Estimator& estimator, const MeshSpace& mesh)
    : experiment_(&experiment), space_(&space), estimator_(&estimator), mesh_(&mesh) {
  const specs::UnitRange all{0, specs::unit_count(specs::block_count(experiment.model))};
  whole_ = cost_models::unit_counts(experiment.model, all, specs::Recomputation::none, 0);
  parameters_ = cost_models::parameters_of_units(experiment.model, all, degrees_of(mesh.mesh));
  parameters_.dense /= mesh.mesh.pipeline;
  parameters_.replicated /= mesh.mesh.pipeline;
  parameters_.expert /= mesh.mesh.pipeline;
  end_ = quickest_end();
}

cost_models::ShardKey MeshBounds::shards_of(const specs::ZeroTreatment& zero) const {
  specs::RegularPlacement point = mesh_->corner();
  point.zero = zero;
  return cost_models::shard_key(point);
}

cost_models::StepEndSeconds MeshBounds::quickest_end() const {
  const cost_models::CostInputs& inputs = estimator_->inputs();
  if (inputs.profile.options.layers_only) return {};
  double reduction = std::numeric_limits<double>::infinity();
  double update = reduction;
  for (const specs::ZeroTreatment& zero : space_->zeros(*mesh_)) {
    cost_models::ShardKey shards = shards_of(zero);
    for (const std::int64_t steps : space_->local_steps(*mesh_, zero))
      for_ends(space_->offload().optimizer, [&](const specs::OffloadTreatment& optimizer) {
        for_ends(space_->parameter_offload(zero), [&](const specs::OffloadTreatment& parameters) {
          shards.local_steps = static_cast<double>(steps);
          shards.offload.optimizer = optimizer;
          shards.offload.parameters = parameters;
          const cost_models::StepEndSeconds end = cost_models::step_end_seconds(inputs, parameters_, shards);
          reduction = std::min(reduction, end.gradient_reduction);
          update = std::min(update, end.update());
        });
      });
  }
  return {.gradient_reduction = reduction, .optimizer_update = update};
}

std::int64_t MeshBounds::device_bytes() const {
  const cost_models::CostInputs& inputs = estimator_->inputs();
  const MeshDegrees& mesh = mesh_->mesh;
  cost_models::RankLoad load;
  load.parameters = parameters_;
  load.pipeline.ranks = static_cast<double>(mesh.pipeline);
  load.micro_batch = 0;
  load.tensor = load.output_tensor = static_cast<double>(mesh.tensor);
  double least = std::numeric_limits<double>::infinity();
  for (const specs::ZeroTreatment& zero : space_->zeros(*mesh_)) {
    load.shards = shards_of(zero);
    for_ends(space_->offload().optimizer, [&](const specs::OffloadTreatment& optimizer) {
      for_ends(space_->parameter_offload(zero), [&](const specs::OffloadTreatment& parameters) {
        load.shards.offload.optimizer = optimizer;
        load.shards.offload.parameters = parameters;
        least = std::min(least, cost_models::rank_memory(inputs, load).total());
      });
    });
  }
  // A byte below: counts of parameters are whole numbers, an average of them is not.
  return std::isfinite(least) ? static_cast<std::int64_t>(least * (1 - 1e-9)) - 1 : 0;
}

MeshBounds::Work MeshBounds::work(const BatchChoice& batch, bool sequence_parallel) const {
  const cost_models::CostInputs& inputs = estimator_->inputs();
  specs::RegularPlacement point = mesh_->corner();
  point.micro_batch = batch.micro_batch;
  point.accumulation = batch.accumulation;
  point.sequence_parallel = sequence_parallel;
  cost_models::UnitCounts counts = whole_;
  if (inputs.profile.options.layers_only) counts.embedding = counts.output = false;
  const cost_models::LayerCosts costs = estimator_->layer(cost_models::layer_key(point));
  const std::vector<specs::ZeroTreatment>& zeros = space_->zeros(*mesh_);
  const auto seconds = [&](const cost_models::ShardKey& shards) {
    return cost_models::stage_seconds(inputs, costs, counts, shards).total();
  };
  Work work;
  work.backward_share = least_backward_share(costs, counts);
  work.seconds = seconds({});
  work.quickest_layer = quickest_layer_seconds(costs, counts);
  work.output = counts.output ? costs.output.forward + costs.output.backward : 0;
  work.without_embedding =
      work.seconds - (counts.embedding ? costs.embedding.forward + costs.embedding.backward : 0);
  if (mesh_->mesh.pipeline > 1 || zeros.front().stage < 2) return work;
  // One rank holds all units, and parameters or gradients travel under every treatment.
  work.seconds = std::numeric_limits<double>::infinity();
  for (const specs::ZeroTreatment& zero : zeros)
    work.seconds = std::min(work.seconds, seconds(shards_of(zero)));
  return work;
}

double MeshBounds::step_seconds(const BatchChoice& batch, const ScheduleChoice& schedule,
                                const Work& work) const {
  specs::RegularPlacement point = mesh_->corner();
  point.micro_batch = batch.micro_batch;
  point.accumulation = batch.accumulation;
  const cost_models::CostInputs& inputs = estimator_->inputs();
  const cost_models::JobShape job = cost_models::job_shape(inputs, point);
  const double ranks = static_cast<double>(point.pipeline);
  const double micro_batches = static_cast<double>(batch.accumulation);
  double pipeline = micro_batches * work.seconds / ranks + end_.gradient_reduction;
  if (ranks > 1) {
    const double there_and_back = work.seconds + 2 * (ranks - 1) * job.transfer_seconds;
    if (schedule.kind == specs::ScheduleKind::gpipe)
      pipeline = std::max(pipeline, there_and_back + (micro_batches - 1) * work.seconds / ranks);
    if (schedule.kind == specs::ScheduleKind::interleaved) {
      const double virtual_stages = static_cast<double>(schedule.virtual_stages);
      const double blocks = static_cast<double>(specs::block_count(experiment_->model));
      const double stage = work.quickest_layer * std::floor(blocks / (ranks * virtual_stages));
      pipeline = std::max(pipeline, (ranks - 1) * (stage + 2 * job.transfer_seconds) +
                                        micro_batches * (virtual_stages * stage + work.output));
    }
    if (schedule.kind == specs::ScheduleKind::one_forward_one_backward)
      pipeline = std::max(pipeline, there_and_back + work.without_embedding *
                                                         busiest_share(point.pipeline, batch.accumulation,
                                                                       work.backward_share));
  }
  return pipeline + end_.update() + cost_models::fixed_seconds(inputs, job.step);
}

}  // namespace planner
