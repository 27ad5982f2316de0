#include "cost_models/stage_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cost_models/offload.h"

namespace cost_models {
namespace {

using specs::TimeTerm;

double shards_within(double ranks, const specs::ZeroTreatment& zero, double stride, double devices_per_node) {
  if (zero.stage < 1) return 1;
  if (zero.shard_ranks > 0) return std::min(static_cast<double>(zero.shard_ranks), ranks);
  if (zero.scope == specs::ShardScope::world) return ranks;
  return std::clamp(devices_per_node / stride, 1.0, ranks);
}

/// Context ranks hold the same parameters: both axes reduce together, from the inner of the two.
struct ReplicaAxes {
  double inner = 1;         ///< ranks of the inner axis
  double outer = 1;         ///< of the other
  double inner_stride = 1;  ///< ranks between neighbours
  double outer_stride = 1;
};

ReplicaAxes replica_axes(const ShardKey& shards) {
  const auto stride = [&shards](specs::MeshAxis axis) {
    return axis_stride(shards.order, axis, shards.tensor, shards.context, shards.data, shards.pipeline);
  };
  ReplicaAxes axes{shards.context, shards.data, stride(specs::MeshAxis::context),
                   stride(specs::MeshAxis::data)};
  const bool data_inside = axes.outer_stride < axes.inner_stride;
  if (axes.inner == 1 || (data_inside && axes.outer > 1)) {
    std::swap(axes.inner, axes.outer);
    std::swap(axes.inner_stride, axes.outer_stride);
  }
  return axes;
}

double data_stride(const ShardKey& shards) { return replica_axes(shards).inner_stride; }

/// The first `ranks` replicas of a parameter.
RankGroup replica_group(double ranks, const ShardKey& shards, double domain_devices) {
  const ReplicaAxes axes = replica_axes(shards);
  RankGroup group{.ranks = ranks, .stride = axes.inner_stride};
  if (axes.outer > 1 && axes.outer_stride > axes.inner_stride * axes.inner) {
    group.inner = axes.inner;
    group.outer_stride = axes.outer_stride;
  }
  group.ranks_per_domain = group.within(domain_devices);
  return group;
}

/// Replicas that own the same shard, one of each group of `shards` replicas.
RankGroup owner_group(double groups, double ranks, const ShardKey& shards, double domain_devices) {
  return rank_group(groups, data_stride(shards) * ranks, domain_devices);
}

void add_unit(const UnitCost& unit, const ModeCounts& counts, std::uint32_t modules,
              double recompute_fraction, StageSeconds& sum, TermSeconds* terms) {
  const double all = total(counts);
  if (all == 0) return;
  const double selective = counts[static_cast<std::size_t>(specs::Recomputation::selective)];
  const double full = counts[static_cast<std::size_t>(specs::Recomputation::full)];
  const double repeated = (selective > 0 ? selective * recompute_seconds(unit, modules) : 0) +
                          full * unit.forward * recompute_fraction;
  sum.forward += all * unit.forward;
  sum.backward += all * unit.backward + repeated;
  sum.weight_gradient += all * unit.weight_gradient;
  if (terms == nullptr) return;
  for (std::size_t i = 0; i < time_terms; ++i) (*terms)[i] += all * unit.terms[i];
  at(*terms, TimeTerm::recomputation) += repeated;
}

// Overlap is never free: while it moves data inside the node, a collective takes multiprocessors and memory
// bandwidth from the compute beside it. Waiting for a slow network takes nothing.
double overlapped(double compute, double transfer, double inside_node, double interference) {
  return std::max(compute, transfer) + interference * std::min(compute, inside_node);
}

/// Where a shard has several owners, their gradients are summed: seconds for `elements` of all shards.
double owner_sum_seconds(const CostInputs& inputs, double elements, double replicas, double ranks,
                         const ShardKey& shards) {
  const double owners = replicas / ranks;
  if (owners <= 1) return 0;
  const LinkRates& links = inputs.links.data;
  return collective_seconds(Collective::all_reduce, elements / ranks * inputs.reduction_bytes,
                            owner_group(owners, ranks, shards, links.domain_devices), links)
      .transfer;
}

}  // namespace

bool reduces_every_micro_batch(const ShardKey& shards) {
  return shards.zero.stage >= 3 || (shards.zero.stage == 2 && shards.pipeline <= 1);
}

double ShardKey::dense_shards(double devices_per_node) const {
  return shards_within(data * context, zero, data_stride(*this), devices_per_node);
}

double ShardKey::expert_shards(double devices_per_node) const {
  return shards_within(expert_data(), zero, expert * expert_tensor, devices_per_node);
}

UnitCounts& UnitCounts::operator+=(const UnitCounts& other) {
  for (std::size_t mode = 0; mode < recompute_modes; ++mode) {
    encoder_attention[mode] += other.encoder_attention[mode];
    attention[mode] += other.attention[mode];
    feed_forward[mode] += other.feed_forward[mode];
    mixture[mode] += other.mixture[mode];
  }
  prediction += other.prediction;
  embedding |= other.embedding;
  output |= other.output;
  recomputed_modules |= other.recomputed_modules;
  checkpoint_layers = std::max(checkpoint_layers, other.checkpoint_layers);
  begins_in_layer |= other.begins_in_layer;
  return *this;
}

UnitCounts unit_counts(const specs::ModelSpec& model, const specs::UnitRange& units,
                       specs::Recomputation mode, std::uint32_t recomputed_modules) {
  const UnitKinds kinds = unit_kinds(model, units);
  UnitCounts counts;
  const auto index = static_cast<std::size_t>(mode);
  counts.encoder_attention[index] = static_cast<double>(kinds.encoder_attention);
  counts.attention[index] = static_cast<double>(kinds.attention);
  counts.feed_forward[index] = static_cast<double>(kinds.feed_forward);
  counts.mixture[index] = static_cast<double>(kinds.mixture);
  counts.prediction = static_cast<double>(kinds.prediction);
  counts.embedding = kinds.embedding;
  counts.output = kinds.output;
  counts.recomputed_modules = mode == specs::Recomputation::selective ? recomputed_modules : 0;
  const std::int64_t blocks = specs::block_count(model);
  counts.begins_in_layer = units.first > specs::embedding_unit() &&
                           units.first < specs::output_unit(blocks) &&
                           units.first % 2 == specs::feed_forward_unit(0) % 2;
  return counts;
}

UnitCounts unit_counts(const specs::ModelSpec& model, const specs::PipelineStage& stage) {
  const std::int64_t blocks = specs::block_count(model);
  if (stage.recomputation.empty()) return unit_counts(model, stage.units, specs::Recomputation::none, 0);
  const std::int64_t touched = specs::layers_touched(stage.units, blocks);
  const std::int64_t first_layer = (std::max(stage.units.first, specs::attention_unit(0)) - 1) / 2;
  UnitCounts counts;
  std::int64_t done = 0;
  for (const specs::RecomputationRun& run : stage.recomputation) {
    const std::int64_t end = std::min(done + run.layers, touched);
    specs::UnitRange part{std::max(stage.units.first, specs::attention_unit(first_layer + done)),
                          std::min(stage.units.end, specs::attention_unit(first_layer + end))};
    if (done == 0) part.first = stage.units.first;
    if (end == touched) part.end = stage.units.end;
    UnitCounts run_counts = unit_counts(model, part, run.mode, run.modules);
    run_counts.checkpoint_layers = static_cast<double>(run.block_layers);
    run_counts.begins_in_layer = done == 0 && run_counts.begins_in_layer;
    counts += run_counts;
    done = end;
    if (done == touched) break;
  }
  return counts;
}

RankParameters stage_parameters(const LayerCosts& costs, const UnitCounts& counts, bool tied_embeddings) {
  RankParameters sum;
  const auto add = [&sum](const RankParameters& each, double times) {
    const auto count = static_cast<std::int64_t>(times);
    sum += {each.dense * count, each.replicated * count, each.expert * count, each.partial * count};
  };
  add(costs.encoder_attention.parameters, total(counts.encoder_attention));
  add(costs.attention.parameters, total(counts.attention));
  add(costs.feed_forward.parameters, counts.feed_forwards());
  add(costs.mixture.parameters, counts.mixtures());
  add(costs.prediction, counts.prediction);
  if (counts.embedding) sum += costs.embedding.parameters;
  if (counts.output) {
    sum += costs.output.parameters;
    if (tied_embeddings && !counts.embedding) sum += costs.tied_table;
  }
  return sum;
}

namespace {

StageSeconds layer_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                           const ShardKey& shards, TermSeconds* terms) {
  const double fraction =
      shards.zero.stage >= 3 ? inputs.recompute_fraction_sharded : inputs.recompute_fraction;
  StageSeconds layers;
  const std::uint32_t modules = counts.recomputed_modules;
  add_unit(costs.encoder_attention, counts.encoder_attention, modules, fraction, layers, terms);
  add_unit(costs.attention, counts.attention, modules, fraction, layers, terms);
  add_unit(costs.feed_forward, counts.feed_forward, modules, fraction, layers, terms);
  add_unit(costs.mixture, counts.mixture, modules, fraction, layers, terms);
  return layers;
}

/// Of the embedding and the output layer, where the stage holds them.
void add_ends(const LayerCosts& costs, const UnitCounts& counts, StageSeconds& seconds, TermSeconds* terms) {
  for (const auto& [present, unit] :
       {std::pair{counts.embedding, &costs.embedding}, {counts.output, &costs.output}}) {
    if (!present) continue;
    seconds.forward += unit->forward;
    seconds.backward += unit->backward;
    seconds.weight_gradient += unit->weight_gradient;
    if (terms != nullptr)
      for (std::size_t i = 0; i < time_terms; ++i) (*terms)[i] += unit->terms[i];
  }
}

/// Parameters that are gathered and reduced together, `groups` collectives for all of them.
struct ShardedUnits {
  double elements = 0;  ///< on a rank, gathered
  double groups = 0;
  double replicas = 1;
  double ranks = 1;  ///< that share each of them out
  RankGroup group;
  double seconds(Collective kind, double bytes_per_element, const LinkRates& links) const {
    if (groups == 0) return 0;
    return groups * collective_seconds(kind, bytes_per_element * elements / groups, group, links).total();
  }
  /// What their transfer takes of the compute beside it.
  double inside_node_seconds(double bytes_per_element, const LinkRates& links) const {
    if (groups == 0) return 0;
    const RankGroup one_domain{.ranks = ranks, .ranks_per_domain = ranks};
    return collective_seconds(Collective::all_gather, bytes_per_element * elements, one_domain, links)
        .transfer;
  }
};

/// Dense parameters, one collective a layer (or a half where the stage holds no more of it) and one a table;
/// and the routed experts of each mixture, which other ranks hold.
std::array<ShardedUnits, 2> sharded_units(const CostInputs& inputs, const UnitCounts& counts,
                                          const RankParameters& parameters, const ShardKey& shards) {
  const double domain = inputs.links.data.domain_devices;
  ShardedUnits dense{.elements = static_cast<double>(parameters.dense),
                     .groups = std::max(counts.attentions(), counts.feed_forwards() + counts.mixtures()) +
                               (counts.embedding ? 1 : 0) + (counts.output ? 1 : 0),
                     .replicas = shards.data * shards.context,
                     .ranks = shards.dense_shards(inputs.devices_per_node)};
  dense.group = replica_group(dense.ranks, shards, domain);
  ShardedUnits experts{.elements = static_cast<double>(parameters.expert),
                       .groups = parameters.expert > 0 ? counts.mixtures() : 0,
                       .replicas = shards.expert_data(),
                       .ranks = shards.expert_shards(inputs.devices_per_node)};
  experts.group = rank_group(experts.ranks, shards.expert * shards.expert_tensor, domain);
  return {dense, experts};
}

}  // namespace

StageSeconds unit_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                          const ShardKey& shards) {
  StageSeconds seconds = layer_seconds(inputs, costs, counts, shards, nullptr);
  add_ends(costs, counts, seconds, nullptr);
  return seconds;
}

StageSeconds stage_seconds(const CostInputs& inputs, const LayerCosts& costs, const UnitCounts& counts,
                           const ShardKey& shards, TermSeconds* terms) {
  const bool sharded_parameters = shards.zero.stage >= 3;
  // The tables run beside the gathers of the layers, and their own travel beside those.
  StageSeconds seconds = layer_seconds(inputs, costs, counts, shards, terms);
  add_ends(costs, counts, seconds, terms);
  if (reduces_every_micro_batch(shards)) {
    const std::array<ShardedUnits, 2> kinds =
        sharded_units(inputs, counts, stage_parameters(costs, counts, inputs.model.tied_embeddings), shards);
    const auto travelling = [&](Collective kind, double bytes_per_element) {
      double sum = 0;
      for (const ShardedUnits& units : kinds)
        sum += units.seconds(kind, bytes_per_element, inputs.links.data);
      return sum;
    };
    const double reduced_bytes = inputs.reduction_bytes;
    const auto inside_node = [&](double bytes_per_element) {
      double sum = 0;
      for (const ShardedUnits& units : kinds)
        sum += units.inside_node_seconds(bytes_per_element, inputs.links.data);
      return sum;
    };
    double reduce = travelling(Collective::reduce_scatter, reduced_bytes);
    for (const ShardedUnits& units : kinds)
      reduce += owner_sum_seconds(inputs, units.elements, units.replicas, units.ranks, shards);
    const double gathered_bytes = sharded_parameters ? inputs.element_bytes : 0;
    const double gather = sharded_parameters ? travelling(Collective::all_gather, gathered_bytes) : 0;
    const double interference = inputs.exposed.gather_interference;
    // Where nothing is prefetched, the whole transfer stands in the way, not only its part inside the node.
    const bool prefetched = inputs.profile.prefetches_gathers;
    const double gather_interferes = prefetched ? inside_node(gathered_bytes) : gather;
    const double both_interfere = prefetched ? inside_node(gathered_bytes + reduced_bytes) : gather + reduce;
    const double forward = overlapped(seconds.forward, gather, gather_interferes, interference);
    const double backward = overlapped(seconds.backward, gather + reduce, both_interfere, interference);
    if (terms != nullptr) {
      const double added = forward - seconds.forward + backward - seconds.backward;
      const double both = 2 * gather + reduce;
      if (both > 0) {
        at(*terms, TimeTerm::parameter_gather) += added * 2 * gather / both;
        at(*terms, TimeTerm::gradient_reduction) += added * reduce / both;
      }
    }
    seconds.forward = forward;
    seconds.backward = backward;
  }
  return seconds;
}

namespace {

// Replicas that train by themselves for H steps (Douillard et al., DiLoCo): in the mean of a step an H-th of
// one all-reduce of fp32 differences and of an outer update with momentum, which reads and writes weights,
// differences and momentum.
void average_over_local_steps(const CostInputs& inputs, double parameters, const ShardKey& shards,
                              StepEndSeconds& seconds) {
  constexpr double difference_bytes = 4;
  constexpr double outer_update_bytes = 6 * 4;
  const RankGroup group =
      rank_group(shards.data * shards.context, data_stride(shards), inputs.links.data.domain_devices);
  seconds.parameter_gather = 0;
  seconds.gradient_reduction =
      collective_seconds(Collective::all_reduce, parameters * difference_bytes, group, inputs.links.data)
          .total() /
      shards.local_steps;
  seconds.optimizer_update +=
      parameters * outer_update_bytes / inputs.memory_bound.bytes_per_second / shards.local_steps;
}

/// In how many collectives of `bucket_bytes` this travels; 0: everything in one.
double messages(double bytes, double bucket_bytes) {
  return bucket_bytes > 0 ? std::max(1.0, bytes / bucket_bytes) : 1;
}

/// Gradients of modules whose copies on the tensor axis share the tokens, once a step.
double sum_over_copies(const CostInputs& inputs, double partial, const ShardKey& shards) {
  if (partial <= 0) return 0;
  const double stride = axis_stride(shards.order, specs::MeshAxis::tensor, shards.tensor, shards.context,
                                    shards.data, shards.pipeline);
  const LinkRates& links = inputs.links.data;
  const bool inside = stride * shards.tensor <= links.domain_devices;
  const double rate = inside ? links.link_bytes_per_second : links.network_bytes_per_second;
  return inputs.exposed.data * 2 * partial * inputs.reduction_bytes / rate;
}

/// Gradients read for their norm, scaled by the clip, and read by Adam beside the master weights and two
/// moments, which it also writes (40); the 16-bit copy (6). With a loss scale also: the 16-bit gradients
/// copied to fp32 (6) and unscaled (8).
double device_update_seconds(const CostInputs& inputs, double parameters) {
  const double bytes_per_parameter = inputs.training.precision == specs::Precision::fp16 ? 60 : 46;
  return inputs.optimizer_traffic * parameters * bytes_per_parameter / inputs.memory_bound.bytes_per_second;
}

struct HostUpdateSeconds {
  double update = 0;
  double transfer = 0;
};

/// Of so many parameters of each rank of a node. Cores that are devices update as fast for the host as for
/// themselves.
HostUpdateSeconds host_update(const CostInputs& inputs, specs::OffloadDevice device, double parameters) {
  constexpr double moments_and_master_bytes = 12;
  const double node_parameters = parameters * inputs.devices_per_node;
  HostUpdateSeconds seconds{host_update_seconds(node_parameters, inputs.cpu_adam_parameters_per_second),
                            host_link_seconds(parameters, 4, inputs.host_link_bytes_per_second)};
  if (inputs.devices_are_cores)
    seconds.update = std::max(seconds.update, device_update_seconds(inputs, parameters));
  if (device == specs::OffloadDevice::nvme)
    seconds.transfer +=
        nvme_swap_seconds(node_parameters * moments_and_master_bytes, inputs.nvme_read_bytes_per_second,
                          inputs.nvme_write_bytes_per_second);
  return seconds;
}

}  // namespace

bool host_updates_quicker(const CostInputs& inputs, specs::OffloadDevice device) {
  if (device == specs::OffloadDevice::none) return false;
  const HostUpdateSeconds host = host_update(inputs, device, 1);
  return host.update + host.transfer < device_update_seconds(inputs, 1);
}

StepEndSeconds step_end_seconds(const CostInputs& inputs, const RankParameters& parameters,
                                const ShardKey& shards) {
  StepEndSeconds seconds;
  const double dense = static_cast<double>(parameters.dense);
  const double expert = static_cast<double>(parameters.expert);
  const LinkRates& links = inputs.links.data;
  if (shards.zero.stage < 3) {
    const bool sharded = shards.zero.stage > 0;
    const double ranks =
        sharded ? shards.dense_shards(inputs.devices_per_node) : shards.data * shards.context;
    const double expert_ranks =
        sharded ? shards.expert_shards(inputs.devices_per_node) : shards.expert_data();
    const RankGroup group = replica_group(ranks, shards, links.domain_devices);
    const RankGroup expert_group =
        rank_group(expert_ranks, shards.expert * shards.expert_tensor, links.domain_devices);
    const auto one_way = [&](double bytes_per_parameter) {
      return collective_seconds(Collective::all_gather, dense * bytes_per_parameter, group, links).transfer +
             collective_seconds(Collective::all_gather, expert * bytes_per_parameter, expert_group, links)
                 .transfer;
    };
    const double reductions = messages(dense * inputs.reduction_bytes, shards.gradient_bucket_bytes);
    const double gathers = messages(dense * inputs.element_bytes, shards.gather_bucket_bytes);
    const double bucket_latency =
        ranks > 1 ? network_steps_seconds(group, links) + links.link_step_seconds * ranks : 0;
    const double gradient_ways = shards.zero.stage == 0 ? 2 : 1;
    if (!reduces_every_micro_batch(shards))
      seconds.gradient_reduction =
          inputs.exposed.data *
          (gradient_ways * one_way(inputs.reduction_bytes) + reductions * bucket_latency) /
          shards.local_steps;
    if (shards.zero.stage >= 1)
      seconds.parameter_gather =
          inputs.exposed.data * (one_way(inputs.element_bytes) + gathers * bucket_latency);
  }
  // Where each micro-batch is reduced, the owners of a shard sum theirs then, too.
  if (shards.zero.stage >= 1 && !reduces_every_micro_batch(shards))
    seconds.gradient_reduction +=
        inputs.exposed.data * (owner_sum_seconds(inputs, dense, shards.data * shards.context,
                                                 shards.dense_shards(inputs.devices_per_node), shards) +
                               owner_sum_seconds(inputs, expert, shards.expert_data(),
                                                 shards.expert_shards(inputs.devices_per_node), shards));
  const double owned = dense / shards.dense_shards(inputs.devices_per_node) +
                       expert / shards.expert_shards(inputs.devices_per_node);
  constexpr double bytes_per_parameter = 4;
  const specs::OffloadTreatment& offload = shards.offload.optimizer;
  const bool offloaded = offload.device != specs::OffloadDevice::none;
  const double moved = offloaded ? static_cast<double>(offload.eighths) / 8 * owned : 0;
  seconds.optimizer_update = device_update_seconds(inputs, owned - moved) +
                             dense * bytes_per_parameter / inputs.memory_bound.bytes_per_second;
  if (moved > 0) {
    const HostUpdateSeconds host = host_update(inputs, offload.device, moved);
    if (shards.offload.delayed_update) {
      seconds.delayed = host.update + host.transfer;
    } else {
      seconds.optimizer_update += host.update;
      seconds.offload_transfer = host.transfer;
    }
  }
  if (shards.local_steps > 1) average_over_local_steps(inputs, dense + expert, shards, seconds);
  seconds.gradient_reduction += sum_over_copies(inputs, static_cast<double>(parameters.partial), shards);
  return seconds;
}

}  // namespace cost_models
