#include "planner/advice.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cost_models/parameters.h"
#include "planner/report/quantity.h"

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

MaybeAdvice mixed_generations(const specs::Experiment& experiment, const specs::Placement&) {
  std::set<std::string> generations;
  for (const auto& group : experiment.cluster.groups) generations.insert(group.node.device.generation);
  if (generations.size() < 2) return std::nullopt;
  return specs::Advice{
      "mixed-generations", "GPUs of different generations train together",
      "every synchronous step waits for the slowest part; kernels and numerics may differ between "
      "generations",
      "practice"};
}

MaybeAdvice large_model_without_pipeline(const specs::Experiment& experiment,
                                         const specs::Placement& placement) {
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
                                             const specs::Placement& placement) {
  const bool sharded = std::any_of(placement.stages.begin(), placement.stages.end(),
                                   [](const specs::PipelineStage& stage) { return stage.zero.stage == 3; });
  if (!sharded || experiment.cluster.network.kind != specs::NetworkKind::ethernet ||
      !spans_nodes(experiment, placement))
    return std::nullopt;
  return specs::Advice{
      "zero-3-over-ethernet", "ZeRO 3 over Ethernet",
      "parameters are gathered twice for each micro-batch over the slowest link; sharding within "
      "the node, or ZeRO 1, moves them once a step",
      "Rajbhandari et al. 2020, arXiv:1910.02054, section 7"};
}

MaybeAdvice large_checkpoint_on_nfs(const specs::Experiment& experiment, const specs::Placement&) {
  const auto parameters = static_cast<double>(cost_models::total_parameters(experiment.model));
  const bool adam = experiment.training.optimizer.type == specs::OptimizerKind::adamw;
  const double state = adam ? 8 : 4;
  const double master = specs::keeps_master_weights(experiment.training.precision) ? 4 : 0;
  const double bytes =
      parameters *
      (static_cast<double>(specs::storage_bytes(experiment.training.precision)) + state + master);
  if (bytes < large_checkpoint_bytes || experiment.cluster.storage.name != "nfs") return std::nullopt;
  return specs::Advice{
      "large-checkpoint-on-nfs", fmt::format("a checkpoint of {:.0f} GB on NFS", bytes / 1e9),
      "one NFS server takes all writes; above 300 GB practitioners report parallel file systems "
      "such as Lustre five times faster",
      "practice"};
}

MaybeAdvice small_devices_for_a_large_model(const specs::Experiment& experiment, const specs::Placement&) {
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

std::vector<specs::Advice> advice_on(const specs::Experiment& experiment, const specs::Placement& placement) {
  std::vector<specs::Advice> advice;
  for (const auto rule : {mixed_generations, large_model_without_pipeline, sharded_parameters_over_ethernet,
                          large_checkpoint_on_nfs, small_devices_for_a_large_model})
    if (MaybeAdvice entry = rule(experiment, placement)) advice.push_back(std::move(*entry));
  return advice;
}

}  // namespace planner
