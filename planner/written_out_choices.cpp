#include "planner/written_out_choices.h"

#include <algorithm>

namespace planner {
namespace {

using specs::Placement;
using specs::RegularPlacement;

/// Layers of which units [first, end) hold any, counted one by one.
std::int64_t layers_in(std::int64_t first, std::int64_t end, std::int64_t blocks) {
  std::int64_t layers = 0;
  for (std::int64_t layer = 0; layer < blocks; ++layer) {
    const std::int64_t attention = 2 * layer + 1;
    layers += (first <= attention && attention < end) || (first <= attention + 1 && attention + 1 < end);
  }
  return layers;
}

std::size_t below(std::size_t count, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

}  // namespace

WrittenOutChoices::WrittenOutChoices(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment),
      stack_(stack),
      blocks_(specs::block_count(experiment.model)),
      units_(specs::unit_count(blocks_)) {}

bool WrittenOutChoices::free_cuts(const RegularPlacement& outer) const {
  const auto& features = experiment_.training.stack_features;
  const bool by_hand = std::find(features.begin(), features.end(), "balanced_stages") != features.end();
  return outer.pipeline > 1 && outer.virtual_stages == 1 && experiment_.search.uneven_stages &&
         stack_.uneven_stages && !by_hand;
}

bool WrittenOutChoices::may_cut_before(std::int64_t unit) const {
  if (unit < 2 || unit > units_ - 2) return false;  // each end keeps an attention or an FFN
  return unit % 2 == 1 || (experiment_.search.cuts_inside_layers && stack_.cuts_inside_layers);
}

std::vector<std::int64_t> WrittenOutChoices::recomputed_choices(const RegularPlacement& outer,
                                                                std::int64_t layers) const {
  if (outer.recomputation == specs::Recomputation::none) return {0};
  const std::vector<std::int64_t>& wanted = experiment_.search.recomputed_layers;
  std::vector<std::int64_t> choices;
  for (std::int64_t count = 0; count <= layers; ++count)
    if (wanted.empty() || std::count(wanted.begin(), wanted.end(), count) > 0) choices.push_back(count);
  return choices;
}

Count WrittenOutChoices::count(const RegularPlacement& outer) const {
  Count& known = counts_[{outer.pipeline, outer.virtual_stages, outer.recomputation}];
  if (known != 0) return known;
  // From the last stage back: the choices of the stages that are left, and those of them that recompute
  // nowhere.
  const bool recomputes = outer.recomputation != specs::Recomputation::none;
  Count all = 1, nowhere = 1;
  const auto has_none = [](const std::vector<std::int64_t>& choices) {
    return !choices.empty() && choices.front() == 0 ? 1 : 0;
  };
  if (!free_cuts(outer)) {
    const std::int64_t layers = blocks_ / (outer.pipeline * outer.virtual_stages);
    const Placement even = specs::regular_placement(outer, blocks_);
    for (std::int64_t rank = 0; rank < outer.pipeline; ++rank) {
      std::int64_t least = blocks_;
      for (const specs::PipelineStage& stage : even.stages)
        if (stage.pipeline_rank == rank)
          least = std::min(least, layers_in(stage.units.first, stage.units.end, blocks_));
      const auto choices = recomputed_choices(outer, std::max(least, layers));
      all *= choices.size();
      nowhere *= has_none(choices);
    }
  } else {
    std::vector<std::vector<std::int64_t>> choices_of_layers;
    for (std::int64_t layers = 0; layers <= blocks_; ++layers)
      choices_of_layers.push_back(recomputed_choices(outer, layers));
    std::vector<std::vector<std::int64_t>> layers(static_cast<std::size_t>(units_));
    for (std::int64_t first = 0; first < units_; ++first)
      for (std::int64_t end = 0; end <= units_; ++end)
        layers[static_cast<std::size_t>(first)].push_back(layers_in(first, end, blocks_));
    std::vector<Count> rest(static_cast<std::size_t>(units_) + 1), still(rest.size());
    rest.back() = still.back() = 1;
    for (std::int64_t stage = outer.pipeline; stage-- > 0;) {
      std::vector<Count> from(rest.size()), nowhere_from(rest.size());
      for (std::int64_t first = 0; first < units_; ++first) {
        if (stage == 0 ? first != 0 : !may_cut_before(first)) continue;
        for (std::int64_t end = first + 1; end <= units_; ++end) {
          const auto index = static_cast<std::size_t>(end);
          if (rest[index] == 0) continue;
          const auto& choices =
              choices_of_layers[static_cast<std::size_t>(layers[static_cast<std::size_t>(first)][index])];
          from[static_cast<std::size_t>(first)] += rest[index] * choices.size();
          nowhere_from[static_cast<std::size_t>(first)] += still[index] * has_none(choices);
        }
      }
      rest = std::move(from);
      still = std::move(nowhere_from);
    }
    all = rest.front();
    nowhere = still.front();
  }
  known = recomputes ? Count(all - nowhere) : all;
  return known;
}

Placement WrittenOutChoices::draw(const RegularPlacement& outer, std::mt19937_64& random) const {
  Placement placement = specs::regular_placement(outer, blocks_);
  if (free_cuts(outer)) {
    std::vector<std::int64_t> places;
    for (std::int64_t unit = 0; unit <= units_; ++unit)
      if (may_cut_before(unit)) places.push_back(unit);
    std::shuffle(places.begin(), places.end(), random);
    places.resize(placement.stages.size() - 1);
    std::sort(places.begin(), places.end());
    places.push_back(units_);
    // Half of them keep the even cut but for one place, which is where the best are.
    const bool near = random() % 2 == 0;
    const std::size_t moved = below(places.size(), random);
    std::int64_t first = 0;
    for (std::size_t stage = 0; stage < places.size(); ++stage) {
      specs::UnitRange& units = placement.stages[stage].units;
      std::int64_t end = places[stage];
      if (near) {
        end = units.end;
        if (stage == moved && stage + 1 < places.size()) {
          const std::int64_t step = may_cut_before(end + 1) ? 1 : 2;
          if (may_cut_before(end + step) && end + step < placement.stages[stage + 1].units.end) end += step;
        }
      }
      units = {first, end};
      first = end;
    }
  }
  bool somewhere = outer.recomputation == specs::Recomputation::none;
  for (int attempt = 0; attempt < 64; ++attempt) {
    std::map<std::int64_t, std::int64_t> of_rank;
    for (specs::PipelineStage& stage : placement.stages) {
      const std::int64_t layers = layers_in(stage.units.first, stage.units.end, blocks_);
      const auto choices = recomputed_choices(outer, layers);
      if (choices.empty()) continue;
      const auto [entry, first] =
          of_rank.try_emplace(stage.pipeline_rank, choices[below(choices.size(), random)]);
      const std::int64_t count = std::min(entry->second, layers);
      somewhere = somewhere || count > 0;
      stage.recomputation.clear();
      if (count > 0) stage.recomputation.push_back({count, outer.recomputation, outer.recomputed_modules});
      if (count > 0 && count < layers)
        stage.recomputation.push_back({layers - count, specs::Recomputation::none});
    }
    if (somewhere) break;
  }
  return placement;
}

}  // namespace planner
