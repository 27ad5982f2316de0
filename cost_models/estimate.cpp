#include "cost_models/estimate.h"

#include <algorithm>
#include <cmath>

#include "cost_models/flops.h"
#include "cost_models/goodput.h"
#include "cost_models/memo.h"
#include "cost_models/rank_price.h"
#include "cost_models/storage.h"
#include "cost_models/time_account.h"

namespace cost_models {
namespace {

using specs::MemoryClass;
using specs::TimeTerm;

/// What of a regular placement fixes its cut.
struct CutKey {
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
  specs::Recomputation recomputation = specs::Recomputation::none;
  std::uint32_t modules = 0;
  bool operator==(const CutKey&) const = default;
};

std::size_t hash_value(const CutKey& key) {
  const auto packed =
      static_cast<std::size_t>(key.pipeline) * 4096 + static_cast<std::size_t>(key.virtual_stages) * 64 +
      static_cast<std::size_t>(key.schedule) * 4 + static_cast<std::size_t>(key.recomputation);
  return (packed ^ (static_cast<std::size_t>(key.modules) << 40)) * 0x9E3779B97F4A7C15ull;
}

std::int64_t whole_bytes(double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); }

}  // namespace

struct Estimator::State {
  std::vector<CostInputs> inputs;  ///< by device group
  std::vector<std::unique_ptr<Memo<LayerKey, LayerCosts>>> layers;
  // Experts have degrees of their own; what they do not touch is priced once for all of them.
  std::vector<std::unique_ptr<Memo<LayerKey, LayerCosts>>> layers_without_mixture;
  std::vector<std::unique_ptr<Memo<LayerKey, UnitCost>>> mixtures;
  std::int64_t parameters = 0;
  Memo<CutKey, PipelineCut> cuts;
  ScheduleOrders orders;
  double noncausal_flops_per_token = 0;
  double causal_flops_per_token = 0;

  const LayerCosts& layer(std::size_t group, const LayerKey& key) {
    return layers[group]->get(key, [&] { return combine(group, key); });
  }
  LayerCosts combine(std::size_t group, const LayerKey& key) {
    if (!inputs[group].model.mixture) return layer_costs(inputs[group], key);
    LayerKey dense = key;
    dense.expert = dense.expert_tensor = 1;
    LayerCosts costs = layers_without_mixture[group]->get(
        dense, [&] { return layer_costs_without_mixture(inputs[group], dense); });
    const LayerKey experts = mixture_key(key);
    costs.mixture = mixtures[group]->get(experts, [&] { return mixture_cost(inputs[group], experts); });
    return costs;
  }
};

Estimator::Estimator(const specs::Experiment& experiment)
    : Estimator(experiment, stack_profile(experiment.training), ConstantTable::built_in()) {}

Estimator::Estimator(const specs::Experiment& experiment, const StackProfile& profile,
                     const ConstantTable& constants)
    : state_(std::make_unique<State>()) {
  for (std::size_t group = 0; group < experiment.cluster.groups.size(); ++group) {
    state_->inputs.push_back(
        make_cost_inputs(experiment, profile, constants, static_cast<std::int64_t>(group)));
    state_->layers.push_back(std::make_unique<Memo<LayerKey, LayerCosts>>());
    state_->layers_without_mixture.push_back(std::make_unique<Memo<LayerKey, LayerCosts>>());
    state_->mixtures.push_back(std::make_unique<Memo<LayerKey, UnitCost>>());
  }
  state_->parameters = total_parameters(experiment.model);
  const double length = static_cast<double>(experiment.training.sequence_length);
  state_->causal_flops_per_token = model_flops_per_token(experiment.model, length);
  state_->noncausal_flops_per_token = model_flops_per_token(experiment.model, length, {.causal = false});
}

Estimator::~Estimator() = default;
Estimator::Estimator(Estimator&&) noexcept = default;
Estimator& Estimator::operator=(Estimator&&) noexcept = default;

const StackProfile& Estimator::profile() const { return state_->inputs.front().profile; }

const CostInputs& Estimator::inputs(std::int64_t device_group) const {
  return state_->inputs.at(static_cast<std::size_t>(device_group));
}

LayerCosts Estimator::layer(const LayerKey& key, std::int64_t device_group) const {
  const auto group = static_cast<std::size_t>(device_group);
  if (!inputs().model.mixture) return state_->layer(group, key);
  return state_->combine(group, key);
}

const PipelineCut& Estimator::cut_of(const specs::RegularPlacement& placement) const {
  const CutKey key{placement.pipeline, placement.virtual_stages, placement.schedule, placement.recomputation,
                   placement.recomputed_modules};
  const specs::ModelSpec& model = inputs().model;
  return state_->cuts.get(key, [&] {
    return pipeline_cut(model, specs::regular_placement(placement, specs::block_count(model)));
  });
}

QuickCost Estimator::quick(const specs::RegularPlacement& placement) const {
  QuickCost quick = quick_memory(placement);
  const CostInputs& inputs = state_->inputs.front();
  quick.step_seconds =
      regular_step_seconds(inputs, state_->layer(0, layer_key(placement)), job_shape(inputs, placement),
                           shard_key(placement), cut_of(placement), state_->orders);
  return quick;
}

QuickCost Estimator::quick_memory(const specs::RegularPlacement& placement) const {
  const CostInputs& inputs = state_->inputs.front();
  const LayerCosts& costs = state_->layer(0, layer_key(placement));
  const ShardKey shards = shard_key(placement);
  const JobShape job = job_shape(inputs, placement);
  const ModuleSplit split = module_split(inputs.model, placement.modules, placement.tensor);
  QuickCost quick;
  for (const RankRun& run : cut_of(placement).ranks) {
    RankLoad load =
        rank_load(job, costs, run.counts, shards, run.first_rank, split, inputs.model.tied_embeddings);
    load.chunks = run.chunks;
    // Where every moment is followed, what arrives counts too, and the first of alike ranks need not be the
    // fullest.
    if (inputs.profile.memory == MemoryRules::dsrun) load.alike_ranks = run.ranks;
    const RankMemory memory = rank_memory(inputs, load);
    quick.peak_device_bytes = std::max(quick.peak_device_bytes, whole_bytes(memory.total()));
    quick.peak_host_bytes_per_node =
        std::max(quick.peak_host_bytes_per_node, whole_bytes(memory.host_total() * inputs.devices_per_node));
  }
  return quick;
}

double Estimator::quick_bound(const specs::RegularPlacement& placement) const {
  const CostInputs& inputs = state_->inputs.front();
  return regular_step_bound(inputs, state_->layer(0, layer_key(placement)), job_shape(inputs, placement),
                            shard_key(placement), cut_of(placement));
}

namespace {

void add_memory(const RankMemory& memory, std::int64_t pipeline_rank, double devices_per_node,
                specs::CostBreakdown& breakdown) {
  const auto add = [&](specs::MemoryLocation location, MemoryClass memory_class, double bytes) {
    if (bytes > 0) breakdown.memory.push_back({memory_class, location, pipeline_rank, whole_bytes(bytes)});
  };
  for (std::size_t i = 0; i < memory_classes; ++i)
    add(specs::MemoryLocation::device, specs::EnumNames<MemoryClass>::names[i].first, memory.device[i]);
  for (std::size_t i = 0; i < memory_classes; ++i)
    add(specs::MemoryLocation::host, specs::EnumNames<MemoryClass>::names[i].first, memory.host[i]);
  add(specs::MemoryLocation::host_pinned, MemoryClass::offload_staging, memory.host_pinned);
  for (std::size_t i = 0; i < memory_classes; ++i)
    add(specs::MemoryLocation::nvme, specs::EnumNames<MemoryClass>::names[i].first, memory.nvme[i]);
  breakdown.peak_device_bytes = std::max(breakdown.peak_device_bytes, whole_bytes(memory.total()));
  breakdown.peak_host_bytes_per_node =
      std::max(breakdown.peak_host_bytes_per_node, whole_bytes(memory.host_total() * devices_per_node));
  breakdown.peak_nvme_bytes_per_node =
      std::max(breakdown.peak_nvme_bytes_per_node, whole_bytes(memory.nvme_total() * devices_per_node));
}

double rank_flops(const LayerCosts& costs, const UnitCounts& counts) {
  return total(counts.encoder_attention) * costs.encoder_attention.flops +
         total(counts.attention) * costs.attention.flops + counts.feed_forwards() * costs.feed_forward.flops +
         counts.mixtures() * costs.mixture.flops + (counts.output ? costs.output.flops : 0);
}

/// One pipeline rank: its stages share its devices and, but for their units, its treatment.
struct PricedRank {
  std::vector<UnitCounts> chunks;  ///< of each of its stages; empty with one
  const specs::PipelineStage* representative = nullptr;
  UnitCounts counts;
  TermSeconds terms{};
  double flops = 0;
  double micro_batch_seconds = 0;
};

/// Stages whose prices may differ by their units alone.
bool treated_alike(const specs::PipelineStage& a, const specs::PipelineStage& b) {
  return a.mesh == b.mesh && a.zero == b.zero && a.offload == b.offload && a.modules == b.modules &&
         a.device_group == b.device_group;
}

/// The stage or rank that was priced last: neighbours are mostly like it.
struct PricedLast {
  const specs::PipelineStage* stage = nullptr;
  const LayerCosts* costs = nullptr;
  ShardKey shards;
  UnitCounts counts;
  bool has_treatment_of(const specs::PipelineStage& other) const {
    return stage != nullptr && treated_alike(*stage, other);
  }
};

void add(const TermSeconds& terms, TermSeconds& sum) {
  for (std::size_t i = 0; i < time_terms; ++i) sum[i] += terms[i];
}

}  // namespace

struct Estimator::PricedStages {
  std::vector<PricedRank> ranks;
  PlacementSeconds seconds;
  JobShape job;
  std::size_t job_group = 0;  ///< of those in use, the one whose transfers take longest
  double step_seconds = 0;

  StepParts parts() const { return {seconds.stages, seconds.transfers, seconds.ends}; }
};

Estimator::PricedStages Estimator::price_stages(const specs::Placement& placement,
                                                const specs::ReplicaShare* share) const {
  const std::vector<CostInputs>& groups = state_->inputs;
  const auto group_of = [&](const specs::PipelineStage& stage) {
    return static_cast<std::size_t>(share != nullptr ? share->device_group : stage.device_group);
  };
  const auto key_of = [&](const specs::PipelineStage& stage) {
    LayerKey key = layer_key(placement, stage);
    if (share != nullptr) key.accumulates = share->micro_batches > 1;
    return key;
  };
  const double micro_batch = static_cast<double>(placement.micro_batch);
  PricedStages priced;
  priced.ranks.resize(static_cast<std::size_t>(placement.pipeline_ranks()));
  priced.seconds.stages.reserve(placement.stages.size());
  std::vector<bool> used(groups.size());
  PricedLast last;
  StageSeconds seconds_of_last;
  TermSeconds terms_of_last{};
  const auto treat = [&](const specs::PipelineStage& stage, std::size_t group) {
    if (!last.has_treatment_of(stage)) {
      last.costs = &state_->layer(group, key_of(stage));
      last.shards = shard_key(placement, stage);
      last.stage = nullptr;
    }
  };
  for (const specs::PipelineStage& stage : placement.stages) {
    PricedRank& rank = priced.ranks.at(static_cast<std::size_t>(stage.pipeline_rank));
    if (rank.representative == nullptr) rank.representative = &stage;
    const std::size_t group = group_of(stage);
    used.at(group) = true;
    const CostInputs& inputs = groups.at(group);
    treat(stage, group);
    const UnitCounts counts = unit_counts(inputs.model, stage);
    rank.counts += counts;
    if (placement.virtual_stages > 1) rank.chunks.push_back(counts);
    rank.flops += rank_flops(*last.costs, counts);
    if (last.stage == nullptr || !(last.counts == counts)) {
      terms_of_last = {};
      seconds_of_last =
          placed_stage_seconds(inputs, *last.costs, counts, last.shards, micro_batch, &terms_of_last);
      last.counts = counts;
    }
    last.stage = &stage;
    add(terms_of_last, rank.terms);
    priced.seconds.stages.push_back(seconds_of_last);
    rank.micro_batch_seconds += seconds_of_last.total();
  }
  balance_stages(groups.front(), priced.seconds.stages);
  bool first = true;
  double fixed = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (!used[group]) continue;
    const JobShape job = job_shape(groups[group], placement);
    const double fixed_of_group = fixed_seconds(groups[group], job.step);
    if (!first && std::pair(job.way(), fixed_of_group) <= std::pair(priced.job.way(), fixed)) continue;
    first = false;
    fixed = fixed_of_group;
    priced.job = job;
    priced.job_group = group;
  }
  if (share != nullptr) priced.job.step.pipeline.micro_batches = static_cast<double>(share->micro_batches);
  priced.seconds.micro_batches = static_cast<std::int64_t>(priced.job.step.pipeline.micro_batches);
  priced.seconds.transfers = priced.job.transfers.between_stages(priced.job.step.pipeline);
  priced.seconds.fixed = fixed_seconds(groups[priced.job_group], priced.job.step);
  priced.seconds.ends.reserve(priced.ranks.size());
  last.stage = nullptr;
  for (const PricedRank& rank : priced.ranks) {
    const specs::PipelineStage& stage = *rank.representative;
    const std::size_t group = group_of(stage);
    treat(stage, group);
    const bool alike = last.stage != nullptr && last.counts == rank.counts;
    priced.seconds.ends.push_back(
        alike ? priced.seconds.ends.back()
              : rank_end_seconds(groups.at(group), *last.costs, rank.counts, last.shards));
    last.stage = &stage;
    last.counts = rank.counts;
  }
  return priced;
}

Estimator::PricedStages Estimator::price_slowest(const specs::Placement& placement) const {
  if (placement.replica_shares.empty()) return price_stages(placement, nullptr);
  PricedStages slowest;
  for (const specs::ReplicaShare& share : placement.replica_shares) {
    PricedStages priced = price_stages(placement, &share);
    priced.step_seconds = cost_models::step_seconds(state_->inputs[priced.job_group], priced.job.step,
                                                    priced.parts(), state_->orders);
    if (priced.step_seconds > slowest.step_seconds) slowest = std::move(priced);
  }
  return slowest;
}

StagePricer Estimator::stage_pricer(const specs::RegularPlacement& outer, std::int64_t device_group) const {
  const auto group = static_cast<std::size_t>(device_group);
  return {state_->inputs.at(group), state_->layer(group, layer_key(outer)), state_->orders, outer};
}

struct Estimator::RankMemoryOfGroup {
  std::size_t group = 0;
  std::int64_t pipeline_rank = 0;
  RankMemory memory;
};

std::vector<Estimator::RankMemoryOfGroup> Estimator::memory_of_ranks(const specs::Placement& placement,
                                                                     const PricedStages& priced,
                                                                     const specs::ReplicaShare* share) const {
  const std::vector<CostInputs>& groups = state_->inputs;
  std::vector<RankMemoryOfGroup> memories;
  memories.reserve(priced.ranks.size());
  PricedLast last;
  RankLoad load;
  for (std::size_t rank = 0; rank < priced.ranks.size(); ++rank) {
    const specs::PipelineStage& stage = *priced.ranks[rank].representative;
    const auto group = static_cast<std::size_t>(share != nullptr ? share->device_group : stage.device_group);
    const PricedRank& of_rank = priced.ranks[rank];
    if (last.has_treatment_of(stage) && last.counts == of_rank.counts) {
      load.pipeline_rank = static_cast<double>(rank);
    } else {
      LayerKey key = layer_key(placement, stage);
      if (share != nullptr) key.accumulates = share->micro_batches > 1;
      load = rank_load(priced.job, state_->layer(group, key), of_rank.counts, shard_key(placement, stage),
                       static_cast<std::int64_t>(rank),
                       module_split(groups.at(group).model, stage.modules, stage.mesh.tensor),
                       groups.at(group).model.tied_embeddings);
      last.counts = of_rank.counts;
    }
    last.stage = &stage;
    load.chunks = of_rank.chunks;
    memories.push_back({group, static_cast<std::int64_t>(rank), rank_memory(groups.at(group), load)});
  }
  return memories;
}

std::vector<Estimator::RankMemoryOfGroup> Estimator::memory_of_shares(
    const specs::Placement& placement) const {
  std::vector<RankMemoryOfGroup> memories;
  for (const specs::ReplicaShare& share : placement.replica_shares)
    for (RankMemoryOfGroup& rank : memory_of_ranks(placement, price_stages(placement, &share), &share))
      memories.push_back(rank);
  return memories;
}

std::vector<RankBytes> Estimator::rank_bytes(const specs::Placement& placement) const {
  std::vector<RankBytes> bytes;
  const std::vector<RankMemoryOfGroup> memories =
      placement.replica_shares.empty() ? memory_of_ranks(placement, price_stages(placement, nullptr), nullptr)
                                       : memory_of_shares(placement);
  for (const RankMemoryOfGroup& rank : memories)
    bytes.push_back({static_cast<std::int64_t>(rank.group), rank.pipeline_rank,
                     whole_bytes(rank.memory.total()),
                     whole_bytes(rank.memory.host_total() * state_->inputs[rank.group].devices_per_node)});
  return bytes;
}

Estimator::Fits Estimator::fits(const specs::Placement& placement) const {
  Fits fits;
  for (const RankBytes& rank : rank_bytes(placement)) {
    fits.device = fits.device && rank.device <= usable_device_bytes(rank.device_group);
    fits.host = fits.host && rank.host_per_node <= usable_host_bytes(rank.device_group);
  }
  return fits;
}

PlacementSeconds Estimator::seconds_of(const specs::Placement& placement) const {
  return price_slowest(placement).seconds;
}

namespace {

/// Of the peak of all devices that there are, all of them in use.
double utilization_of_groups(const CostInputs& inputs, const specs::CostBreakdown& breakdown) {
  double peak_flops = 0;
  for (const specs::ClusterGroup& group : inputs.cluster.groups) {
    const auto peak = group.node.device.peak_flops.find(inputs.training.precision);
    if (peak != group.node.device.peak_flops.end())
      peak_flops += static_cast<double>(group.devices()) * peak->second;
  }
  if (peak_flops <= 0) return breakdown.model_flops_utilization;
  return breakdown.noncausal_model_flops_per_step / (breakdown.step_seconds * peak_flops);
}

}  // namespace

// Where replicas of several groups have a rank, the one that has least room left.
void Estimator::add_memory_of_ranks(const specs::Placement& placement, const PricedStages& priced,
                                    specs::CostBreakdown& breakdown) const {
  const std::vector<RankMemoryOfGroup> memories = placement.replica_shares.empty()
                                                      ? memory_of_ranks(placement, priced, nullptr)
                                                      : memory_of_shares(placement);
  const auto room = [&](const RankMemoryOfGroup& rank) {
    return static_cast<double>(usable_device_bytes(static_cast<std::int64_t>(rank.group))) -
           rank.memory.total();
  };
  const std::size_t ranks = priced.ranks.size();
  breakdown.memory.reserve(ranks * memory_classes);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const RankMemoryOfGroup* fullest = &memories[rank];
    for (std::size_t other = rank + ranks; other < memories.size(); other += ranks)
      if (room(memories[other]) < room(*fullest)) fullest = &memories[other];
    add_memory(fullest->memory, static_cast<std::int64_t>(rank),
               state_->inputs[fullest->group].devices_per_node, breakdown);
  }
}

specs::CostBreakdown Estimator::estimate(const specs::Placement& placement) const {
  specs::CostBreakdown breakdown;
  const std::vector<CostInputs>& groups = state_->inputs;
  const PricedStages priced = price_slowest(placement);
  const JobShape& job = priced.job;
  add_memory_of_ranks(placement, priced, breakdown);
  const auto slowest = std::max_element(
      priced.ranks.begin(), priced.ranks.end(),
      [](const PricedRank& a, const PricedRank& b) { return a.micro_batch_seconds < b.micro_batch_seconds; });
  const auto pacing = static_cast<std::size_t>(slowest - priced.ranks.begin());
  const StepSeconds step =
      step_account(groups[priced.job_group], job.step, priced.parts(), pacing, state_->orders);
  breakdown.time.reserve((priced.ranks.size() + 1) * time_terms);
  TimeAccount account(step, job.step.pipeline.micro_batches, breakdown.time);
  const auto add_rank = [&](std::int64_t pipeline_rank, std::size_t rank) {
    StepEndSeconds end = priced.seconds.ends[rank];
    end.optimizer_update += step.late_update;
    account.add_rank(pipeline_rank, end, priced.ranks[rank].terms, priced.ranks[rank].flops);
  };
  add_rank(-1, pacing);
  for (std::size_t rank = 0; rank < priced.ranks.size(); ++rank)
    add_rank(static_cast<std::int64_t>(rank), rank);
  breakdown.step_seconds = step.total();
  const double spread = std::exp(groups.front().interval_half_width);
  breakdown.step_seconds_low = breakdown.step_seconds / spread;
  breakdown.step_seconds_high = breakdown.step_seconds * spread;
  for (specs::TimeEntry& entry : breakdown.time) {
    entry.exposed_seconds_low = entry.exposed_seconds / spread;
    entry.exposed_seconds_high = entry.exposed_seconds * spread;
  }
  add_job_figures(placement, breakdown);
  if (groups.size() > 1) breakdown.model_flops_utilization = utilization_of_groups(groups.front(), breakdown);
  return breakdown;
}

namespace {

void add_goodput(const CostInputs& inputs, std::int64_t parameters, double nodes, double step_seconds,
                 JobFigures& figures) {
  const specs::TrainingSpec& training = inputs.training;
  const bool adam = training.optimizer.type == specs::OptimizerKind::adamw;
  const double full = std::max(4.0, inputs.element_bytes);
  figures.checkpoint_bytes = checkpoint_bytes(parameters, full, (adam ? 2 : 1) * full);
  figures.checkpoint_seconds =
      checkpoint_write_seconds(static_cast<double>(figures.checkpoint_bytes), inputs.cluster.storage, nodes);
  if (figures.checkpoint_seconds <= 0) return;
  const double stall = figures.checkpoint_seconds;  // written while training waits
  const double between_failures = mean_seconds_between_failures(inputs.cluster.failures_per_node_hour, nodes);
  double interval = static_cast<double>(training.checkpoint_every) * step_seconds;
  if (interval == 0 && between_failures > 0) {
    interval = best_checkpoint_interval_seconds(stall, between_failures);
    figures.checkpoint_every_steps = std::max<std::int64_t>(1, std::llround(interval / step_seconds));
  }
  figures.goodput_fraction =
      goodput_fraction(interval, stall, between_failures, inputs.cluster.restart_seconds);
}

}  // namespace

JobFigures Estimator::job_figures(double step_seconds, std::int64_t world_size) const {
  const CostInputs& inputs = state_->inputs.front();
  const specs::NodeSpec& node = inputs.cluster.groups.front().node;
  const double devices = static_cast<double>(world_size);
  double nodes = std::ceil(devices / static_cast<double>(node.devices));
  double dollars_per_hour = nodes * node.price_per_hour_dollars;
  const double idle_nodes = static_cast<double>(inputs.cluster.groups.front().nodes) - nodes;
  double watts = devices * node.device.power_watts * inputs.power_fraction + nodes * node.power_watts +
                 std::max(0.0, idle_nodes) * node.idle_power_watts;
  bool all_priced = true;
  if (state_->inputs.size() > 1) {  // all in use
    nodes = dollars_per_hour = watts = 0;
    for (std::size_t index = 0; index < state_->inputs.size(); ++index) {
      const specs::ClusterGroup& group = inputs.cluster.groups[index];
      const double of_group = static_cast<double>(group.nodes);
      nodes += of_group;
      dollars_per_hour += of_group * group.node.price_per_hour_dollars;
      all_priced = all_priced && group.node.price_per_hour_dollars > 0;
      watts += static_cast<double>(group.devices()) * group.node.device.power_watts *
                   state_->inputs[index].power_fraction +
               of_group * group.node.power_watts;
    }
  }
  JobFigures figures;
  // The price of some nodes alone would be no cost of the job.
  figures.cost_per_step_dollars = all_priced ? dollars_per_hour * step_seconds / 3600 : 0;
  figures.energy_per_step_joules = watts * step_seconds;
  add_goodput(inputs, state_->parameters, nodes, step_seconds, figures);
  return figures;
}

void Estimator::add_job_figures(const specs::Placement& placement, specs::CostBreakdown& breakdown) const {
  const CostInputs& inputs = state_->inputs.front();
  const specs::TrainingSpec& training = inputs.training;
  const double tokens =
      static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length);
  const double step = breakdown.step_seconds;
  breakdown.tokens_per_second = tokens / step;
  breakdown.model_flops_per_step = state_->causal_flops_per_token * tokens;
  breakdown.noncausal_model_flops_per_step = state_->noncausal_flops_per_token * tokens;
  const specs::NodeSpec& node = inputs.cluster.groups.front().node;
  const double devices = static_cast<double>(placement.world_size());
  const auto peak = node.device.peak_flops.find(training.precision);
  if (peak != node.device.peak_flops.end() && peak->second > 0)
    breakdown.model_flops_utilization =
        breakdown.noncausal_model_flops_per_step / (step * devices * peak->second);
  const JobFigures figures = job_figures(step, placement.world_size());
  breakdown.cost_per_step_dollars = figures.cost_per_step_dollars;
  breakdown.energy_per_step_joules = figures.energy_per_step_joules;
  breakdown.checkpoint_bytes = figures.checkpoint_bytes;
  breakdown.checkpoint_seconds = breakdown.checkpoint_stall_seconds = figures.checkpoint_seconds;
  if (figures.checkpoint_every_steps > 0) breakdown.checkpoint_every_steps = figures.checkpoint_every_steps;
  breakdown.goodput_fraction = figures.goodput_fraction;
  if (training.tokens > 0) {
    // Devices are paid for and powered while they write checkpoints, wait and make lost steps again, too.
    const double steps = training.tokens / tokens / figures.goodput_fraction;
    breakdown.run_seconds = steps * step;
    breakdown.run_device_hours = breakdown.run_seconds * devices / 3600;
    breakdown.run_cost_dollars = steps * breakdown.cost_per_step_dollars;
    breakdown.run_energy_joules = steps * breakdown.energy_per_step_joules;
  }
}

std::int64_t Estimator::usable_device_bytes(std::int64_t device_group) const {
  const CostInputs& inputs = state_->inputs.at(static_cast<std::size_t>(device_group));
  return inputs.cluster.groups[static_cast<std::size_t>(device_group)].node.device.memory_bytes;
}

std::int64_t Estimator::most_usable_device_bytes() const {
  std::int64_t most = 0;
  for (std::size_t group = 0; group < state_->inputs.size(); ++group)
    most = std::max(most, usable_device_bytes(static_cast<std::int64_t>(group)));
  return most;
}

std::int64_t Estimator::usable_host_bytes(std::int64_t device_group) const {
  // The operating system and the framework's processes take a tenth.
  const auto& node = state_->inputs.at(static_cast<std::size_t>(device_group))
                         .cluster.groups[static_cast<std::size_t>(device_group)]
                         .node;
  return whole_bytes(0.9 * static_cast<double>(node.host_memory_bytes));
}

bool Estimator::fits(const QuickCost& cost, std::int64_t device_group) const {
  return cost.peak_device_bytes <= usable_device_bytes(device_group) &&
         cost.peak_host_bytes_per_node <= usable_host_bytes(device_group);
}

}  // namespace cost_models
