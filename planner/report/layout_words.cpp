#include "planner/report/layout_words.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/space/module_treatments.h"
#include "planner/wording/quantity.h"

namespace planner {
namespace {

using specs::name_of;

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_offload(std::vector<std::string>& parts, std::string_view what,
                 const specs::OffloadTreatment& offload) {
  if (offload.device == specs::OffloadDevice::none) return;
  const std::string share = offload.eighths == 8 ? "" : fmt::format("{}/8 of ", offload.eighths);
  parts.push_back(fmt::format("{}{} on {}", share, what, name_of(offload.device)));
}

}  // namespace

std::string mesh_words(const specs::Placement& placement) {
  if (placement.stages.empty()) return "no stages";
  const specs::StageMesh& mesh = placement.stages.front().mesh;
  const bool alike = std::all_of(placement.stages.begin(), placement.stages.end(),
                                 [&](const specs::PipelineStage& stage) { return stage.mesh == mesh; });
  if (!alike) return fmt::format("{} stages with meshes of their own", placement.stages.size());
  std::string words =
      fmt::format("tensor {} × pipeline {} × data {}", mesh.tensor, placement.pipeline_ranks(), mesh.data);
  if (mesh.context != 1) words += fmt::format(" × context {}", mesh.context);
  if (mesh.expert != 1) words += fmt::format(", expert {}", mesh.expert);
  if (mesh.expert_tensor != 1) words += fmt::format(", expert tensor {}", mesh.expert_tensor);
  const specs::ModuleTreatments& modules = placement.stages.front().modules;
  if (modules != specs::ModuleTreatments{}) words += fmt::format(", modules {}", value_of(modules));
  return words;
}

std::string micro_batch_words(const specs::Placement& placement) {
  return fmt::format("{} × {}", placement.micro_batch, format_count(placement.accumulation));
}

std::string short_schedule_words(const specs::Placement& placement) {
  if (placement.pipeline_ranks() == 1) return {};
  const std::string_view name = name_of(placement.schedule);
  return placement.virtual_stages > 1 ? fmt::format("{} ×{}", name, placement.virtual_stages)
                                      : std::string(name);
}

std::string schedule_words(const specs::Placement& placement) {
  std::string words;
  if (placement.pipeline_ranks() > 1) {
    words = name_of(placement.schedule);
    if (placement.virtual_stages > 1)
      words += fmt::format(" with {} stages a rank", placement.virtual_stages);
    if (placement.micro_batch_group > 0)
      words += fmt::format(", {} micro-batches a round", placement.micro_batch_group);
    words += ", ";
  }
  return words + "micro-batch " + micro_batch_words(placement);
}

std::string recomputation_words(const specs::Placement& placement) {
  std::vector<specs::Recomputation> modes;
  for (const specs::PipelineStage& stage : placement.stages) {
    if (stage.recomputation.empty()) modes.push_back(specs::Recomputation::none);
    for (const specs::RecomputationRun& run : stage.recomputation) modes.push_back(run.mode);
  }
  if (modes.empty()) return "none";
  const bool alike =
      std::all_of(modes.begin(), modes.end(), [&](auto mode) { return mode == modes.front(); });
  return alike ? std::string(name_of(modes.front())) : "mixed";
}

std::string memory_saving_words(const specs::Placement& placement) {
  std::vector<std::string> parts;
  const std::string recomputation = recomputation_words(placement);
  if (recomputation != "none") parts.push_back(recomputation + " recomputation");
  if (placement.sequence_parallel) parts.emplace_back("sequence parallel");
  if (!placement.stages.empty()) {
    const specs::PipelineStage& stage = placement.stages.front();
    if (stage.zero.stage > 0)
      parts.push_back(fmt::format("ZeRO {}{}", stage.zero.stage,
                                  stage.zero.scope == specs::ShardScope::node ? " within the node" : ""));
    add_offload(parts, stage.offload.delayed_update ? "optimizer (updated one step late)" : "optimizer",
                stage.offload.optimizer);
    add_offload(parts, "parameters", stage.offload.parameters);
    add_offload(parts, "activations", stage.offload.activations);
  }
  return parts.empty() ? "nothing" : joined(parts);
}

std::string unit_words(const specs::UnitRange& units, std::int64_t layers) {
  std::vector<std::string> parts;
  if (units.contains(specs::embedding_unit())) parts.emplace_back("embedding");
  std::int64_t first = std::max(units.first, specs::attention_unit(0));
  std::int64_t end = std::min(units.end, specs::output_unit(layers));
  if (first < end && first % 2 == 0) {
    parts.push_back(fmt::format("layer {} FFN", first / 2 - 1));
    ++first;
  }
  const bool ends_inside = first < end && end % 2 == 0;
  if (ends_inside) --end;
  if (first < end) {
    const std::int64_t first_layer = (first - 1) / 2, last_layer = (end - 1) / 2 - 1;
    parts.push_back(first_layer == last_layer ? fmt::format("layer {}", first_layer)
                                              : fmt::format("layers {}–{}", first_layer, last_layer));
  }
  if (ends_inside) parts.push_back(fmt::format("layer {} attention", (end - 1) / 2));
  if (units.contains(specs::output_unit(layers))) parts.emplace_back("output layer");
  return joined(parts);
}

std::string rank_unit_words(const specs::Placement& placement, std::int64_t pipeline_rank,
                            std::int64_t layers) {
  std::string words;
  for (const specs::PipelineStage& stage : placement.stages) {
    if (stage.pipeline_rank != pipeline_rank) continue;
    if (!words.empty()) words += "; ";
    words += unit_words(stage.units, layers);
  }
  return words;
}

}  // namespace planner
