#include "planner/space/written_out_choices.h"

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

/// Of the rank's smallest stage.
std::int64_t layers_of_rank(const Placement& placement, std::size_t rank, std::int64_t blocks) {
  std::int64_t least = blocks;
  for (const specs::PipelineStage& stage : placement.stages)
    if (stage.pipeline_rank == static_cast<std::int64_t>(rank))
      least = std::min(least, layers_in(stage.units.first, stage.units.end, blocks));
  return least;
}

std::size_t below(std::size_t count, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

}  // namespace

WrittenOutChoices::WrittenOutChoices(const specs::Experiment& experiment, const specs::StackSpec& stack)
    : experiment_(experiment),
      stack_(stack),
      blocks_(specs::block_count(experiment.model)),
      units_(specs::unit_count(blocks_)),
      numbers_(stack.recomputed_layers) {
  for (const specs::ClusterGroup& group : experiment.cluster.groups)
    groups_.push_back(group.nodes * group.node.devices);
  if (groups_.size() > 1) numbers_ = specs::RecomputedLayerNumbers::each;
}

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

bool WrittenOutChoices::numbered(specs::Recomputation mode) const {
  return mode != specs::Recomputation::none &&
         (numbers_ == specs::RecomputedLayerNumbers::each ||
          (numbers_ == specs::RecomputedLayerNumbers::alike && mode == specs::Recomputation::full));
}

bool WrittenOutChoices::several() const {
  const bool cut = experiment_.search.uneven_stages && stack_.uneven_stages && !stack_.schedules.empty();
  return cut || std::any_of(stack_.recomputations.begin(), stack_.recomputations.end(),
                            [this](specs::Recomputation mode) { return numbered(mode); });
}

/// Every stage recomputes as many layers as every other, or all that it has.
bool WrittenOutChoices::same_for_all(const RegularPlacement& outer) const {
  return outer.recomputation != specs::Recomputation::none &&
         (!numbered(outer.recomputation) || numbers_ == specs::RecomputedLayerNumbers::alike);
}

std::vector<std::int64_t> WrittenOutChoices::numbers_for_all(const RegularPlacement& outer) const {
  if (!numbered(outer.recomputation)) return {blocks_};
  const std::vector<std::int64_t>& wanted = experiment_.search.recomputed_layers;
  std::vector<std::int64_t> numbers;
  // As many as the largest stage of the even cut has.
  for (std::int64_t number = 1; (number - 1) * outer.pipeline * outer.virtual_stages < blocks_; ++number)
    if (wanted.empty() || std::count(wanted.begin(), wanted.end(), number) > 0) numbers.push_back(number);
  return numbers;
}

std::vector<std::int64_t> WrittenOutChoices::recomputed_choices(const RegularPlacement& outer,
                                                                std::int64_t layers) const {
  if (outer.recomputation == specs::Recomputation::none || same_for_all(outer)) return {0};
  const std::vector<std::int64_t>& wanted = experiment_.search.recomputed_layers;
  std::vector<std::int64_t> choices;
  for (std::int64_t count = 0; count <= layers; ++count)
    if (wanted.empty() || std::count(wanted.begin(), wanted.end(), count) > 0) choices.push_back(count);
  return choices;
}

bool WrittenOutChoices::stages_on_groups(const RegularPlacement& outer) const {
  if (!free_cuts(outer)) return false;
  for (const std::int64_t devices : groups_)
    if (devices * outer.pipeline % (outer.tensor * outer.context * outer.data * outer.pipeline) != 0)
      return false;
  return true;
}

std::vector<WrittenOutChoices::Shares> WrittenOutChoices::shares(const RegularPlacement& outer) const {
  std::vector<Shares> found;
  const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
  if (groups_.size() != 2 || !experiment_.search.unequal_shares || groups_[0] % replica != 0 ||
      groups_[1] % replica != 0)
    return found;
  const std::int64_t all = experiment_.training.global_batch / outer.micro_batch;
  for (std::int64_t first = 1; first * (groups_[0] / replica) < all; ++first) {
    const std::int64_t rest = all - first * (groups_[0] / replica);
    if (rest % (groups_[1] / replica) == 0) found.emplace_back(first, rest / (groups_[1] / replica));
  }
  return found;
}

Count WrittenOutChoices::count(const RegularPlacement& outer) const {
  if (groups_.size() == 1) return count_of_cuts(outer);
  Count orders = 1;
  for (std::size_t group = 2; group <= groups_.size(); ++group) orders *= group;
  Count all = shares(outer).size();
  if (stages_on_groups(outer)) all += count_of_cuts(outer) * orders;
  return all;
}

Count WrittenOutChoices::count_of_cuts(const RegularPlacement& outer) const {
  Count& known = counts_[{outer.pipeline, outer.virtual_stages, outer.recomputation}];
  if (known != 0) return known;
  // From the last stage back: the choices of the stages that are left, and those of them that recompute
  // nowhere.
  const bool own_numbers = outer.recomputation != specs::Recomputation::none && !same_for_all(outer);
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
  known = own_numbers ? Count(all - nowhere) : all;
  if (same_for_all(outer)) known *= numbers_for_all(outer).size();
  return known;
}

// A coin says whether stages or replicas are spread, where both are possible: there are far more cuts than
// shares.
Placement WrittenOutChoices::draw(const RegularPlacement& outer, std::mt19937_64& random) const {
  if (groups_.size() == 1) return draw_cut(outer, random);
  const std::vector<Shares> all = shares(outer);
  const bool stages = stages_on_groups(outer) && (all.empty() || random() % 2 == 0);
  if (stages) {
    Placement placement = draw_cut(outer, random);
    std::vector<std::size_t> order(groups_.size());
    for (std::size_t group = 0; group < order.size(); ++group) order[group] = group;
    std::shuffle(order.begin(), order.end(), random);
    set_groups(outer, order, placement);
    return placement;
  }
  return with_shares(outer, all[below(all.size(), random)]);
}

void WrittenOutChoices::set_groups(const RegularPlacement& outer, const std::vector<std::size_t>& order,
                                   Placement& placement) const {
  std::size_t stage = 0;
  for (const std::size_t group : order)
    for (std::int64_t rank = 0; rank < groups_[group] / (outer.tensor * outer.context * outer.data); ++rank)
      placement.stages[stage++].device_group = static_cast<std::int64_t>(group);
}

Placement WrittenOutChoices::with_shares(const RegularPlacement& outer, const Shares& shares) const {
  const auto [first, second] = shares;
  RegularPlacement longest = outer;
  longest.accumulation = std::max(first, second);
  Placement placement = specs::regular_placement(longest, blocks_);
  const std::int64_t replica = outer.tensor * outer.context * outer.pipeline;
  placement.replica_shares = {{groups_[0] / replica, first, 0}, {groups_[1] / replica, second, 1}};
  return placement;
}

Placement WrittenOutChoices::draw_cut(const RegularPlacement& outer, std::mt19937_64& random) const {
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
  std::vector<std::int64_t> of_rank(static_cast<std::size_t>(outer.pipeline), 0);
  if (same_for_all(outer)) {
    const std::vector<std::int64_t> numbers = numbers_for_all(outer);
    std::fill(of_rank.begin(), of_rank.end(), numbers[below(numbers.size(), random)]);
  } else if (outer.recomputation != specs::Recomputation::none) {
    for (int attempt = 0; attempt < 64 && std::count(of_rank.begin(), of_rank.end(), 0) == outer.pipeline;
         ++attempt)
      for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
        const auto choices = recomputed_choices(outer, layers_of_rank(placement, rank, blocks_));
        if (!choices.empty()) of_rank[rank] = choices[below(choices.size(), random)];
      }
  }
  set_numbers(outer, of_rank, placement);
  return placement;
}

void WrittenOutChoices::set_numbers(const RegularPlacement& outer, const std::vector<std::int64_t>& of_rank,
                                    Placement& placement) const {
  for (specs::PipelineStage& stage : placement.stages) {
    const std::int64_t layers = layers_in(stage.units.first, stage.units.end, blocks_);
    const std::int64_t count = std::min(of_rank[static_cast<std::size_t>(stage.pipeline_rank)], layers);
    stage.recomputation.clear();
    if (count > 0) stage.recomputation.push_back({count, outer.recomputation, outer.recomputed_modules});
    if (count > 0 && count < layers)
      stage.recomputation.push_back({layers - count, specs::Recomputation::none});
  }
}

bool WrittenOutChoices::visit_cuts(const RegularPlacement& outer, const Visit& visit) const {
  Placement placement = specs::regular_placement(outer, blocks_);
  if (!free_cuts(outer)) return visit(placement);
  // Behind each unit: where later stages may begin. A stage that leaves too few of them leads nowhere.
  std::vector<std::size_t> places_after(static_cast<std::size_t>(units_) + 1, 0);
  for (std::int64_t unit = units_ - 1; unit-- > 0;)
    places_after[static_cast<std::size_t>(unit)] =
        places_after[static_cast<std::size_t>(unit) + 1] + (may_cut_before(unit + 1) ? 1 : 0);
  const std::function<bool(std::size_t, std::int64_t)> cut = [&](std::size_t stage, std::int64_t first) {
    const std::size_t left = placement.stages.size() - stage - 1;
    if (left == 0) {
      placement.stages[stage].units = {first, units_};
      return visit(placement);
    }
    for (std::int64_t end = first + 1;
         end < units_ && places_after[static_cast<std::size_t>(end)] + 1 >= left; ++end) {
      if (!may_cut_before(end)) continue;
      placement.stages[stage].units = {first, end};
      if (!cut(stage + 1, end)) return false;
    }
    return true;
  };
  return cut(0, 0);
}

bool WrittenOutChoices::visit_choices(const RegularPlacement& outer, const Visit& visit) const {
  if (groups_.size() == 1) return visit_stages(outer, visit);
  for (const Shares& each : shares(outer))
    if (!visit(with_shares(outer, each))) return false;
  if (!stages_on_groups(outer)) return true;
  return visit_stages(outer, [&](const Placement& cut) {
    Placement placement = cut;
    std::vector<std::size_t> order(groups_.size());
    for (std::size_t group = 0; group < order.size(); ++group) order[group] = group;
    do {
      set_groups(outer, order, placement);
      if (!visit(placement)) return false;
    } while (std::next_permutation(order.begin(), order.end()));
    return true;
  });
}

bool WrittenOutChoices::visit_stages(const RegularPlacement& outer, const Visit& visit) const {
  return visit_cuts(outer, [&](const Placement& cut) { return visit_numbers(outer, cut, visit); });
}

bool WrittenOutChoices::visit_numbers(const RegularPlacement& outer, Placement cut,
                                      const Visit& visit) const {
  std::vector<std::int64_t> of_rank(static_cast<std::size_t>(outer.pipeline), 0);
  const auto show = [&] {
    set_numbers(outer, of_rank, cut);
    return visit(cut);
  };
  if (same_for_all(outer)) {
    for (const std::int64_t number : numbers_for_all(outer)) {
      std::fill(of_rank.begin(), of_rank.end(), number);
      if (!show()) return false;
    }
    return true;
  }
  const std::function<bool(std::size_t)> number_from = [&](std::size_t rank) {
    if (rank < of_rank.size()) {
      for (const std::int64_t number : recomputed_choices(outer, layers_of_rank(cut, rank, blocks_))) {
        of_rank[rank] = number;
        if (!number_from(rank + 1)) return false;
      }
      return true;
    }
    const bool nowhere = std::count(of_rank.begin(), of_rank.end(), 0) == outer.pipeline;
    return nowhere != (outer.recomputation == specs::Recomputation::none) || show();
  };
  return number_from(0);
}

}  // namespace planner
