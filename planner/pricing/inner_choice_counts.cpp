// How many inner choices there are.
#include <algorithm>
#include <vector>

#include "planner/pricing/inner_choice.h"

namespace planner {
namespace {

using specs::PipelineStage;
using specs::RegularPlacement;

}  // namespace

Count InnerChoices::count_of_cuts(const RegularPlacement& outer) const {
  if (!cuts_are_free(outer)) return 1;
  // Cuts are chosen among the places between the ends.
  const auto places = static_cast<std::int64_t>(pieces_.places().size()) - 2;
  const std::int64_t cuts = outer.pipeline - 1;
  Count ways = cuts > places ? 0 : 1;
  for (std::int64_t cut = 1; cut <= cuts && ways != 0; ++cut) ways = ways * (places - cuts + cut) / cut;
  return ways;
}

Count InnerChoices::count(const RegularPlacement& outer) const {
  if (only_one(outer)) return 1;
  const bool free = numbers_are_free(outer);
  const auto [known, unknown] = counts_.try_emplace({outer.pipeline, outer.virtual_stages, free});
  if (!unknown) return known->second;
  Count& count = known->second;
  if (!free)
    count = count_of_cuts(outer);
  else if (numbers_ == specs::RecomputedLayerNumbers::alike)
    count = count_of_cuts(outer) * numbers_alike(outer).size();
  else
    count = count_each(outer);
  return count;
}

Count InnerChoices::count_each(const RegularPlacement& outer) const {
  const RecomputedLayers allowed(experiment_.search, outer);
  Count count = 1;
  if (cuts_are_free(outer)) {
    count = count_each_of_free_cuts(outer.pipeline);
  } else {
    const specs::Placement even = specs::regular_placement(outer, blocks_);
    for (std::int64_t rank = 0; rank < outer.pipeline; ++rank) {
      std::int64_t layers = blocks_;
      for (const PipelineStage& stage : even.stages)
        if (stage.pipeline_rank == rank)
          layers = std::min(layers, specs::layers_touched(stage.units, blocks_));
      count *= allowed.choices(layers);
    }
  }
  if (allowed.allows_none()) count -= count_of_cuts(outer);
  return count;
}

// Choices of the stages up to each place, stage by stage. A stage [first, end) touches the layers from
// `opening(first)` to `closing(end)`: with sums over `first` of the choices, and of the choices times the
// opening layer, a place takes no look at the places before it. Numbers that [search] names are counted one
// by one: a number n is a choice of the stages that open at `closing(end) + 1 - n` or before.
Count InnerChoices::count_each_of_free_cuts(std::int64_t stages) const {
  const auto opening = [](std::int64_t unit) { return unit == 0 ? 0 : (unit - 1) / 2; };
  const auto closing = [&](std::int64_t end) { return std::min((end - 2) / 2, blocks_ - 1); };
  const std::vector<std::int64_t>& places = pieces_.places();
  std::vector<std::int64_t> wanted = experiment_.search.recomputed_layers;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<Count> choices(places.size());
  choices[0] = 1;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    std::vector<Count> next(places.size()), up_to(places.size() + 1);
    Count sum = 0, opened = 0;
    for (std::size_t end = 1; end < places.size(); ++end) {
      const std::size_t first = end - 1;
      sum += choices[first];
      opened += choices[first] * opening(places[first]);
      up_to[end] = sum;
      const std::int64_t closes = closing(places[end]);
      if (wanted.empty()) next[end] = sum * (closes + 2) - opened;
      for (const std::int64_t number : wanted) {
        // The stage has at least one layer, so that none is a choice of all of them.
        const auto opens_late = [&](std::int64_t place) {
          return number > 0 && opening(place) > closes + 1 - number;
        };
        const auto before =
            std::partition_point(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(end),
                                 [&](std::int64_t place) { return !opens_late(place); });
        next[end] += up_to[static_cast<std::size_t>(before - places.begin())];
      }
    }
    choices = std::move(next);
  }
  return choices.back();
}

}  // namespace planner
