// Layers cut as evenly as they go: the numbers of recomputed layers alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planner/pricing/inner_choice.h"

namespace planner {
namespace {

using specs::RegularPlacement;

}  // namespace

const EvenCut& InnerChoices::even_cut(const RegularPlacement& outer) const {
  const CutKey key{outer.pipeline, outer.virtual_stages, outer.schedule, outer.recomputation,
                   outer.recomputed_modules};
  const auto known = even_cuts_.find(key);
  if (known != even_cuts_.end()) return known->second;
  return even_cuts_.try_emplace(key, experiment_.model, outer).first->second;
}

std::optional<InnerChoice> InnerChoices::best_of_even_cut(const RegularPlacement& outer,
                                                          const Wanted& wanted) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  FixedCut cut(pricer, even_cut(outer));
  const auto fits = [&](std::size_t rank, std::int64_t count) {
    const auto bytes = cut.memory(rank, count);
    return bytes.device <= estimator_.usable_device_bytes() &&
           bytes.host_per_node <= estimator_.usable_host_bytes();
  };
  const auto take = [&](const std::vector<std::int64_t>& counts) {
    cut.set(counts);
    if (const double bound = cut.bound(); bound > wanted.enough_seconds)
      return InnerChoice{{}, {}, bound, false, true};
    InnerChoice choice;
    choice.cost = cut.cost();
    choice.least_step_seconds = choice.cost.step_seconds;
    choice.parts = cut.parts();
    return choice;
  };
  if (numbers_ == specs::RecomputedLayerNumbers::alike) {
    const std::vector<std::int64_t> numbers = numbers_alike(outer);
    const auto fit = std::partition_point(numbers.begin(), numbers.end(), [&](std::int64_t number) {
      for (std::size_t rank = 0; rank < cut.ranks(); ++rank)
        if (!fits(rank, number)) return true;
      return false;
    });
    if (fit == numbers.end()) return std::nullopt;
    return take(std::vector(cut.ranks(), *fit));
  }
  const RecomputedLayers allowed(experiment_.search, outer);
  const auto fewest_of = [&](std::size_t rank, bool some) {
    return allowed.fewest(cut.layers(rank), some, [&](std::int64_t count) { return fits(rank, count); });
  };
  std::vector<std::int64_t> counts;
  for (std::size_t rank = 0; rank < cut.ranks(); ++rank) {
    const auto least = fewest_of(rank, false);
    if (!least) return std::nullopt;
    counts.push_back(*least);
  }
  if (std::any_of(counts.begin(), counts.end(), [](std::int64_t count) { return count > 0; }))
    return take(counts);
  // Some rank must recompute: the one where that costs least.
  std::optional<std::vector<std::int64_t>> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t rank = 0; rank < cut.ranks(); ++rank) {
    const auto some = fewest_of(rank, true);
    if (!some) continue;
    std::vector<std::int64_t> tried = counts;
    tried[rank] = *some;
    cut.set(tried);
    const double seconds = cut.step_seconds();
    if (seconds >= least) continue;
    least = seconds;
    best = std::move(tried);
  }
  if (!best) return std::nullopt;
  return take(*best);
}

}  // namespace planner
