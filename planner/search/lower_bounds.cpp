#include "planner/search/lower_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

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

cost_models::ShardDegrees degrees_of(const specs::ModelSpec& model, const MeshDegrees& mesh) {
  cost_models::ShardDegrees degrees = cost_models::shard_degrees(model, {}, mesh.tensor);
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

/// Treatments in which every treatment of each module occurs, as few as there are of the module with most.
std::vector<specs::ModuleTreatments> each_module_once(const std::vector<specs::ModuleTreatments>& all) {
  using specs::ModuleTreatments;
  std::vector<ModuleTreatments> attention, feed_forward, embedding, output;
  const auto note = [](const ModuleTreatments& part, std::vector<ModuleTreatments>& parts) {
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  };
  for (const ModuleTreatments& each : all) {
    note({.attention_tensor = each.attention_tensor, .attention_work = each.attention_work}, attention);
    note({.feed_forward_tensor = each.feed_forward_tensor, .feed_forward_work = each.feed_forward_work},
         feed_forward);
    note({.embedding_tensor = each.embedding_tensor, .embedding_work = each.embedding_work}, embedding);
    note({.output_tensor = each.output_tensor, .output_mode = each.output_mode}, output);
  }
  const std::size_t most = std::max({attention.size(), feed_forward.size(), embedding.size(), output.size()});
  std::vector<ModuleTreatments> together;
  for (std::size_t index = 0; index < most; ++index) {
    const auto of = [index](const std::vector<ModuleTreatments>& parts) {
      return parts[index % parts.size()];
    };
    ModuleTreatments next = of(output);
    next.attention_tensor = of(attention).attention_tensor;
    next.attention_work = of(attention).attention_work;
    next.feed_forward_tensor = of(feed_forward).feed_forward_tensor;
    next.feed_forward_work = of(feed_forward).feed_forward_work;
    next.embedding_tensor = of(embedding).embedding_tensor;
    next.embedding_work = of(embedding).embedding_work;
    together.push_back(next);
  }
  return together;
}

void take_quicker(const cost_models::UnitCost& other, cost_models::UnitCost& unit) {
  unit.forward = std::min(unit.forward, other.forward);
  unit.backward = std::min(unit.backward, other.backward);
  if (other.parameters.total() < unit.parameters.total()) unit.parameters = other.parameters;
}

}  // namespace

MeshBounds::MeshBounds(const specs::Experiment& experiment, const Space& space,
                       const cost_models::Estimator& estimator, const MeshSpace& mesh)
    : experiment_(&experiment), space_(&space), estimator_(&estimator), mesh_(&mesh) {
  const specs::UnitRange all{0, specs::unit_count(specs::block_count(experiment.model))};
  whole_ = cost_models::unit_counts(experiment.model, all, specs::Recomputation::none, 0);
  parameters_ =
      cost_models::parameters_of_units(experiment.model, all, degrees_of(experiment.model, mesh.mesh));
  parameters_.dense /= mesh.mesh.pipeline;
  parameters_.replicated /= mesh.mesh.pipeline;
  parameters_.expert /= mesh.mesh.pipeline;
  const std::size_t groups = experiment.cluster.groups.size();
  for (std::size_t group = 0; group < groups; ++group) ends_.push_back(quickest_end(group));
  if (groups > 1) layouts_ = std::make_shared<const GroupLayouts>(experiment);
  of_each_module_ = each_module_once(space.modules(mesh));
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
      for (const bool delayed : {false, true})
        for_ends(space_->optimizer_offload(delayed), [&](const specs::OffloadTreatment& optimizer) {
          for_ends(space_->parameter_offload(zero), [&](const specs::OffloadTreatment& parameters) {
            shards.local_steps = static_cast<double>(steps);
            shards.offload = {optimizer, parameters, {}, delayed};
            const cost_models::StepEndSeconds end =
                cost_models::step_end_seconds(inputs, parameters_, shards);
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
  load.split = cost_models::module_split(experiment_->model, {}, mesh.tensor);
  double least = std::numeric_limits<double>::infinity();
  for (const specs::ZeroTreatment& zero : space_->zeros(*mesh_)) {
    load.shards = shards_of(zero);
    for (const bool delayed : {false, true})
      for_ends(space_->optimizer_offload(delayed), [&](const specs::OffloadTreatment& optimizer) {
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

specs::RegularPlacement MeshBounds::point_of(const BatchChoice& batch, bool sequence_parallel) const {
  specs::RegularPlacement point = mesh_->corner();
  point.micro_batch = batch.micro_batch;
  point.accumulation = batch.accumulation;
  point.sequence_parallel = sequence_parallel;
  return point;
}

MeshBounds::Work MeshBounds::work(const BatchChoice& batch, bool sequence_parallel,
                                  const specs::ModuleTreatments& modules) const {
  specs::RegularPlacement point = point_of(batch, sequence_parallel);
  point.modules = modules;
  Work work;
  for (std::size_t group = 0; group < ends_.size(); ++group)
    work.push_back(work_of_group(
        estimator_->layer(cost_models::layer_key(point), static_cast<std::int64_t>(group)), group));
  return work;
}

MeshBounds::Work MeshBounds::quickest_work(const BatchChoice& batch, bool sequence_parallel) const {
  if (of_each_module_.size() == 1) return work(batch, sequence_parallel, of_each_module_.front());
  specs::RegularPlacement point = point_of(batch, sequence_parallel);
  Work work;
  for (std::size_t group = 0; group < ends_.size(); ++group) {
    std::optional<cost_models::LayerCosts> quickest;
    double backward_share = 1;
    for (const specs::ModuleTreatments& modules : of_each_module_) {
      point.modules = modules;
      const cost_models::LayerCosts costs =
          estimator_->layer(cost_models::layer_key(point), static_cast<std::int64_t>(group));
      backward_share = std::min(backward_share, least_backward_share(costs, whole_));
      if (!quickest) {
        quickest = costs;
        continue;
      }
      take_quicker(costs.attention, quickest->attention);
      take_quicker(costs.encoder_attention, quickest->encoder_attention);
      take_quicker(costs.feed_forward, quickest->feed_forward);
      take_quicker(costs.mixture, quickest->mixture);
      take_quicker(costs.embedding, quickest->embedding);
      take_quicker(costs.output, quickest->output);
    }
    work.push_back(work_of_group(*quickest, group));
    work.back().backward_share = std::min(work.back().backward_share, backward_share);
  }
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

MeshBounds::GroupSeconds MeshBounds::work_of_group(const cost_models::LayerCosts& costs,
                                                   std::size_t group) const {
  const cost_models::CostInputs& inputs = estimator_->inputs(static_cast<std::int64_t>(group));
  cost_models::UnitCounts counts = whole_;
  if (inputs.profile.options.layers_only) counts.embedding = counts.output = false;
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
  std::pair<double, double> slowest{-1, 0};  // what prices the transfers
  MixedPipeline pipeline{point.schedule, static_cast<double>(point.accumulation), 0, 1, {}};
  double reduction = std::numeric_limits<double>::infinity(), update = reduction, fixed = reduction;
  for (std::size_t group = 0; group < work.size(); ++group) {
    const cost_models::CostInputs& inputs = estimator_->inputs(static_cast<std::int64_t>(group));
    const cost_models::JobShape job = cost_models::job_shape(inputs, point);
    works.push_back(work[group].of_kinds);
    pipeline.backward_share = std::min(pipeline.backward_share, work[group].backward_share);
    const double fixed_of_group = cost_models::fixed_seconds(inputs, job.step);
    if (std::pair(job.way(), fixed_of_group) > slowest) {
      slowest = {job.way(), fixed_of_group};
      pipeline.transfer_seconds = job.transfers.least();
    }
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
    const double there_and_back = work.seconds + 2 * job.way();
    if (point.schedule == specs::ScheduleKind::gpipe)
      pipeline = std::max(pipeline, there_and_back + (micro_batches - 1) * work.seconds / ranks);
    if (point.schedule == specs::ScheduleKind::interleaved) {
      const double virtual_stages = static_cast<double>(point.virtual_stages);
      const double blocks = static_cast<double>(specs::block_count(experiment_->model));
      const double stage = work.quickest_layer * std::floor(blocks / (ranks * virtual_stages));
      pipeline = std::max(pipeline, (ranks - 1) * stage + 2 * job.way() +
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
