#include "planner/plan/advice.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cost_models/parameters.h"
#include "planner/wording/quantity.h"
#include "specs/language/catalog.h"

namespace planner {
namespace {

using MaybeAdvice = std::optional<specs::Advice>;

constexpr double large_model_parameters = 50e9;
constexpr double very_large_model_parameters = 150e9;
constexpr double large_checkpoint_bytes = 300e9;
constexpr std::int64_t small_device_bytes = std::int64_t{48} << 30;

bool spans_nodes(const specs::Experiment& experiment, const specs::Placement& placement) {
  return placement.world_size() > experiment.cluster.groups.front().node.devices;
}

/// A network whose messages go through the kernel's sockets.
bool over_sockets(const specs::NetworkSpec& network) {
  return network.kind == specs::NetworkKind::ethernet && !network.rdma;
}

MaybeAdvice mixed_generations(const specs::Experiment& experiment, const specs::Placement&,
                              const specs::CostBreakdown&) {
  std::set<std::string> generations;
  for (const auto& group : experiment.cluster.groups) generations.insert(group.node.device.generation);
  if (generations.size() < 2) return std::nullopt;
  return specs::Advice{
      "mixed-generations", "GPUs of different generations train together",
      "every synchronous step waits for the slowest part; kernels and numerics may differ between "
      "generations",
      "practice; Um et al. 2024, Metis (USENIX ATC)"};
}

MaybeAdvice large_model_without_pipeline(const specs::Experiment& experiment,
                                         const specs::Placement& placement, const specs::CostBreakdown&) {
  const auto parameters = static_cast<double>(cost_models::total_parameters(experiment.model));
  if (parameters < large_model_parameters || placement.pipeline_ranks() > 1 ||
      !spans_nodes(experiment, placement))
    return std::nullopt;
  return specs::Advice{
      "large-model-without-pipeline",
      fmt::format("{} parameters without a pipeline", format_parameters(parameters)),
      "every node then takes part in each layer's exchange; a pipeline sends activations between "
      "neighbours only",
      "Narayanan et al. 2021, arXiv:2104.04473, takeaway 1"};
}

MaybeAdvice sharded_parameters_over_ethernet(const specs::Experiment& experiment,
                                             const specs::Placement& placement, const specs::CostBreakdown&) {
  const bool sharded = std::any_of(placement.stages.begin(), placement.stages.end(),
                                   [](const specs::PipelineStage& stage) { return stage.zero.stage == 3; });
  if (!sharded || !over_sockets(experiment.cluster.network) || !spans_nodes(experiment, placement))
    return std::nullopt;
  return specs::Advice{
      "zero-3-over-ethernet", "ZeRO 3 over Ethernet",
      "parameters are gathered twice for each micro-batch over the slowest link; sharding within "
      "the node, or ZeRO 1, moves them once a step",
      "Rajbhandari et al. 2020, arXiv:1910.02054, section 7"};
}

/// Gradient tensors of a layer that are vectors of the model's width: norms and biases.
std::int64_t vectors_of_a_layer(const specs::ModelSpec& model) {
  std::int64_t vectors = model.norms_per_layer * (model.norm_bias ? 2 : 1);
  vectors += (model.attention.qkv_bias ? 1 : 0) + (model.attention.output_bias ? 1 : 0);
  return vectors + (model.feed_forward.bias ? 2 : 0);
}

MaybeAdvice small_tensors(const specs::Experiment& experiment, const specs::Placement& placement,
                          const specs::CostBreakdown&) {
  const specs::PipelineStage& stage = placement.stages.front();
  const std::int64_t tensor_bytes =
      experiment.model.hidden * specs::storage_bytes(experiment.training.reduction_precision);
  const std::int64_t least = placement.buckets.minimum_message_bytes;
  const std::int64_t vectors = vectors_of_a_layer(experiment.model) * specs::block_count(experiment.model);
  const specs::NetworkSpec& network = experiment.cluster.network;
  if (stage.mesh.data * stage.mesh.context == 1 || !spans_nodes(experiment, placement) ||
      network.node_bytes_per_second <= 0 || tensor_bytes >= least || vectors == 0)
    return std::nullopt;
  const double card_bytes_per_second =
      network.node_bytes_per_second /
      std::max<double>(1, static_cast<double>(experiment.cluster.groups.front().node.network_cards));
  return specs::Advice{
      "small-tensors-together",
      fmt::format("gradients of {} norms and biases of {} each travel together, in messages of at least {}",
                  format_count(vectors), format_bytes(static_cast<double>(tensor_bytes)),
                  format_bytes(static_cast<double>(least))),
      fmt::format(
          "alone each would wait {} for {} of transfer; a card of {:.1f} GB/s reaches half its rate with "
          "messages of {}",
          format_seconds(network.latency_seconds),
          format_seconds(static_cast<double>(tensor_bytes) / card_bytes_per_second),
          card_bytes_per_second / 1e9, format_bytes(network.latency_seconds * card_bytes_per_second)),
      "practice: messages under 128 KB do not fill a link; the plan's buckets"};
}

MaybeAdvice large_checkpoint_on_nfs(const specs::Experiment& experiment, const specs::Placement&,
                                    const specs::CostBreakdown& cost) {
  const auto bytes = static_cast<double>(cost.checkpoint_bytes);
  if (bytes < large_checkpoint_bytes || experiment.cluster.storage.name != "nfs") return std::nullopt;
  std::string against;
  if (const auto lustre = specs::catalog_storage("lustre"); lustre && lustre->write_bytes_per_second > 0)
    against = fmt::format("; the catalog's Lustre takes {}",
                          format_seconds(bytes / lustre->write_bytes_per_second));
  return specs::Advice{"large-checkpoint-on-nfs",
                       fmt::format("a checkpoint of {:.0f} GB on NFS", bytes / 1e9),
                       fmt::format("one NFS server takes all writes, {} for each checkpoint{}",
                                   format_seconds(cost.checkpoint_seconds), against),
                       "practice: above 300 GB a parallel file system is five times faster"};
}

MaybeAdvice small_devices_for_a_large_model(const specs::Experiment& experiment, const specs::Placement&,
                                            const specs::CostBreakdown&) {
  const auto parameters = static_cast<double>(cost_models::total_parameters(experiment.model));
  const specs::DeviceSpec& device = experiment.cluster.groups.front().node.device;
  if (parameters < very_large_model_parameters || device.memory_bytes > small_device_bytes)
    return std::nullopt;
  return specs::Advice{
      "small-devices-for-a-large-model",
      fmt::format("{} parameters on {} devices of {}", format_parameters(parameters), device.name,
                  format_bytes(static_cast<double>(device.memory_bytes))),
      "twice the memory a device halves the ranks that must share each layer, and with them the "
      "communication and the pipeline bubble",
      "practice"};
}

}  // namespace

std::vector<specs::Advice> advice_on(const specs::Experiment& experiment, const specs::Placement& placement,
                                     const specs::CostBreakdown& cost) {
  std::vector<specs::Advice> advice;
  for (const auto rule : {mixed_generations, large_model_without_pipeline, sharded_parameters_over_ethernet,
                          small_tensors, large_checkpoint_on_nfs, small_devices_for_a_large_model})
    if (MaybeAdvice entry = rule(experiment, placement, cost)) advice.push_back(std::move(*entry));
  return advice;
}

}  // namespace planner
