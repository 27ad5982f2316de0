#include "planner/search/lower_bounds.h"

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
  for (const double busy : busy_micro_batches(specs::ScheduleKind::one_forward_one_backward, ranks,
                                              micro_batches, backward_share)) {
    if (busy <= 0) return 0;
    sum += 1 / busy;
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
  const std::size_t groups = experiment.cluster.groups.size();
  for (std::size_t group = 0; group < groups; ++group) ends_.push_back(quickest_end(group));
  if (groups > 1) layouts_ = std::make_shared<const GroupLayouts>(experiment);
}

cost_models::ShardKey MeshBounds::shards_of(const specs::ZeroTreatment& zero) const {
  specs::RegularPlacement point = mesh_->corner();
  point.zero = zero;
  return cost_models::shard_key(point);
}

cost_models::StepEndSeconds MeshBounds::quickest_end(std::size_t group) const {
  const cost_models::CostInputs& inputs = estimator_->inputs(static_cast<std::int64_t>(group));
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
        for (std::size_t group = 0; group < ends_.size(); ++group)
          least = std::min(
              least,
              cost_models::rank_memory(estimator_->inputs(static_cast<std::int64_t>(group)), load).total());
      });
    });
  }
  // A byte below: counts of parameters are whole numbers, an average of them is not.
  return std::isfinite(least) ? static_cast<std::int64_t>(least * (1 - 1e-9)) - 1 : 0;
}

MeshBounds::Work MeshBounds::work(const BatchChoice& batch, bool sequence_parallel) const {
  specs::RegularPlacement point = mesh_->corner();
  point.micro_batch = batch.micro_batch;
  point.accumulation = batch.accumulation;
  point.sequence_parallel = sequence_parallel;
  Work work;
  for (std::size_t group = 0; group < ends_.size(); ++group) work.push_back(work_of_group(point, group));
  return work;
}

namespace {

GroupWork kinds_of(const cost_models::LayerCosts& costs, const cost_models::UnitCounts& counts) {
  const auto whole = [](const cost_models::UnitCost& unit) { return unit.forward + unit.backward; };
  GroupWork work;
  work.of_kind = {cost_models::total(counts.encoder_attention) * whole(costs.encoder_attention),
                  cost_models::total(counts.attention) * whole(costs.attention),
                  counts.feed_forwards() * whole(costs.feed_forward),
                  counts.mixtures() * whole(costs.mixture), counts.output ? whole(costs.output) : 0};
  work.embedding = counts.embedding ? whole(costs.embedding) : 0;
  return work;
}

}  // namespace

MeshBounds::GroupSeconds MeshBounds::work_of_group(const specs::RegularPlacement& point,
                                                   std::size_t group) const {
  const auto index = static_cast<std::int64_t>(group);
  const cost_models::CostInputs& inputs = estimator_->inputs(index);
  cost_models::UnitCounts counts = whole_;
  if (inputs.profile.options.layers_only) counts.embedding = counts.output = false;
  const cost_models::LayerCosts costs = estimator_->layer(cost_models::layer_key(point), index);
  const std::vector<specs::ZeroTreatment>& zeros = space_->zeros(*mesh_);
  const auto seconds = [&](const cost_models::ShardKey& shards) {
    return cost_models::stage_seconds(inputs, costs, counts, shards).total();
  };
  GroupSeconds work;
  work.backward_share = least_backward_share(costs, counts);
  work.seconds = seconds({});
  work.quickest_layer = quickest_layer_seconds(costs, counts);
  work.output = counts.output ? costs.output.forward + costs.output.backward : 0;
  work.without_embedding =
      work.seconds - (counts.embedding ? costs.embedding.forward + costs.embedding.backward : 0);
  if (layouts_) work.of_kinds = kinds_of(costs, counts);
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
  point.schedule = schedule.kind;
  point.virtual_stages = schedule.virtual_stages;
  if (!layouts_) return step_of_group(point, work.front(), 0);
  double least = std::numeric_limits<double>::infinity();
  const MeshDegrees& mesh = mesh_->mesh;
  if (mesh.pipeline > 1 && schedule.virtual_stages == 1 &&
      layouts_->ranks_lie_in_groups(mesh.tensor * mesh.context * mesh.data))
    least = step_of_stages(point, work);
  const ReplicaShares shares =
      layouts_->shares(mesh.tensor * mesh.context * mesh.pipeline, mesh.data * batch.accumulation);
  if (shares.count > 0) least = std::min(least, step_of_shares(point, work, shares));
  return least;
}

double MeshBounds::step_of_shares(const specs::RegularPlacement& point, const Work& work,
                                  const ReplicaShares& shares) const {
  const auto seconds = [&](std::int64_t share, std::size_t group) {
    specs::RegularPlacement alike = point;
    alike.accumulation = share;
    return step_of_group(alike, work[group], group);
  };
  const auto best =
      shares.at(shares.best(0, shares.count - 1, shares.balanced(work[0].seconds, work[1].seconds), seconds));
  return std::max(seconds(best[0], 0), seconds(best[1], 1));
}

double MeshBounds::step_of_stages(const specs::RegularPlacement& point, const Work& work) const {
  std::vector<GroupWork> works;
  MixedPipeline pipeline{point.schedule, static_cast<double>(point.accumulation), 0, 1, {}};
  double reduction = std::numeric_limits<double>::infinity(), update = reduction, fixed = reduction;
  for (std::size_t group = 0; group < work.size(); ++group) {
    const cost_models::CostInputs& inputs = estimator_->inputs(static_cast<std::int64_t>(group));
    const cost_models::JobShape job = cost_models::job_shape(inputs, point);
    works.push_back(work[group].of_kinds);
    pipeline.backward_share = std::min(pipeline.backward_share, work[group].backward_share);
    pipeline.transfer_seconds = std::max(pipeline.transfer_seconds, job.transfer_seconds);
    reduction = std::min(reduction, ends_[group].gradient_reduction);
    update = std::min(update, ends_[group].update());
    fixed = std::min(fixed, cost_models::fixed_seconds(inputs, job.step));
  }
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<std::size_t>& order : layouts_->orders()) {
    const auto groups = layouts_->group_of_rank(order, point.tensor * point.context * point.data);
    pipeline.group_of_rank = groups;
    const MixedPipelineBound bound = mixed_pipeline_bound(pipeline, works);
    least = std::min(least, std::max(bound.seconds, bound.shared_seconds + bound.least_weight * reduction));
  }
  return least + update + fixed;
}

double MeshBounds::step_of_group(const specs::RegularPlacement& point, const GroupSeconds& work,
                                 std::size_t group) const {
  const cost_models::CostInputs& inputs = estimator_->inputs(static_cast<std::int64_t>(group));
  const cost_models::JobShape job = cost_models::job_shape(inputs, point);
  const double ranks = static_cast<double>(point.pipeline);
  const double micro_batches = static_cast<double>(point.accumulation);
  double pipeline = micro_batches * work.seconds / ranks + ends_[group].gradient_reduction;
  if (ranks > 1) {
    const double there_and_back = work.seconds + 2 * (ranks - 1) * job.transfer_seconds;
    if (point.schedule == specs::ScheduleKind::gpipe)
      pipeline = std::max(pipeline, there_and_back + (micro_batches - 1) * work.seconds / ranks);
    if (point.schedule == specs::ScheduleKind::interleaved) {
      const double virtual_stages = static_cast<double>(point.virtual_stages);
      const double blocks = static_cast<double>(specs::block_count(experiment_->model));
      const double stage = work.quickest_layer * std::floor(blocks / (ranks * virtual_stages));
      pipeline = std::max(pipeline, (ranks - 1) * (stage + 2 * job.transfer_seconds) +
                                        micro_batches * (virtual_stages * stage + work.output));
    }
    if (point.schedule == specs::ScheduleKind::one_forward_one_backward)
      pipeline = std::max(pipeline, there_and_back + work.without_embedding *
                                                         busiest_share(point.pipeline, point.accumulation,
                                                                       work.backward_share));
  }
  return pipeline + ends_[group].update() + cost_models::fixed_seconds(inputs, job.step);
}

}  // namespace planner
