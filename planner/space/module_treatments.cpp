#include "planner/space/module_treatments.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace planner {
namespace {

using specs::ModuleTreatments;
using specs::SearchSpec;

void error_of_several(std::string_view key, std::size_t values, specs::Diagnostics& diagnostics) {
  diagnostics.error({}, fmt::format("search.{}: {} values; a given placement has one", key, values),
                    "keep one of them");
}

}  // namespace

std::string value_of(const ModuleTreatments& modules) {
  std::string text;
  const auto add = [&text](std::string_view name, std::int64_t degree, specs::ReplicaWork work) {
    if (degree == 0) return;
    if (!text.empty()) text += '+';
    text += fmt::format("{}/{}", name, degree);
    if (work == specs::ReplicaWork::token_share) text += fmt::format("/{}", specs::name_of(work));
  };
  const bool token_parallel = modules.output_mode == specs::OutputLayerMode::token_parallel;
  add("attention", modules.attention_tensor, modules.attention_work);
  add("feed-forward", modules.feed_forward_tensor, modules.feed_forward_work);
  add("embedding", modules.embedding_tensor, modules.embedding_work);
  if (!token_parallel) add("output", modules.output_tensor, specs::ReplicaWork::redundant);
  if (token_parallel) text += text.empty() ? "output/token-parallel" : "+output/token-parallel";
  return text.empty() ? "own" : text;
}

bool restricts_modules(const SearchSpec& search) {
  for (const ModuleDegree& module : module_degrees)
    if (!(search.*module.restriction).empty()) return true;
  return !search.output_mode.empty();
}

SearchSpec without_module_treatments(SearchSpec search) {
  for (const ModuleDegree& module : module_degrees) search.*module.restriction = {0};
  search.output_mode = {specs::OutputLayerMode::vocabulary_parallel};
  return search;
}

specs::Result<specs::Placement> with_module_treatments(specs::Placement placement, const SearchSpec& search) {
  specs::Result<specs::Placement> result;
  for (const ModuleDegree& module : module_degrees) {
    const std::vector<std::int64_t>& restriction = search.*module.restriction;
    if (restriction.size() > 1) error_of_several(module.key, restriction.size(), result.diagnostics);
    if (restriction.size() != 1) continue;
    for (specs::PipelineStage& stage : placement.stages)
      stage.modules.*module.degree = restriction.front() == stage.mesh.tensor ? 0 : restriction.front();
  }
  if (search.output_mode.size() > 1)
    error_of_several("output_mode", search.output_mode.size(), result.diagnostics);
  if (search.output_mode.size() == 1)
    for (specs::PipelineStage& stage : placement.stages) {
      stage.modules.output_mode = search.output_mode.front();
      if (stage.modules.output_mode == specs::OutputLayerMode::token_parallel)
        stage.modules.output_tensor = stage.mesh.tensor == 1 ? 0 : 1;
    }
  if (!result.diagnostics.has_errors()) result.value = std::move(placement);
  return result;
}

specs::Placement with_cuts_before_feed_forwards(specs::Placement placement, std::int64_t layers) {
  for (std::size_t i = 0; i + 1 < placement.stages.size(); ++i) {
    const std::int64_t cut = placement.stages[i].units.end;
    const bool before_an_attention = cut % 2 == 1 && cut < specs::output_unit(layers);
    if (!before_an_attention) continue;
    placement.stages[i].units.end = cut + 1;
    placement.stages[i + 1].units.first = cut + 1;
  }
  for (specs::PipelineStage& stage : placement.stages) {
    // The last run of layers takes what the stage has gained or lost.
    if (stage.recomputation.empty()) continue;
    std::int64_t missing = specs::layers_touched(stage.units, layers);
    for (const specs::RecomputationRun& run : stage.recomputation) missing -= run.layers;
    stage.recomputation.back().layers += missing;
  }
  return placement;
}

}  // namespace planner
