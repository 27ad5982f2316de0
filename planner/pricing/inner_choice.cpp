#include "planner/pricing/inner_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planner/pricing/stage_chain.h"

namespace planner {
namespace {

using cost_models::StageSeconds;
using cost_models::UnitCounts;
using specs::PipelineStage;
using specs::RegularPlacement;

}  // namespace

InnerChoices::InnerChoices(const specs::Experiment& experiment, const specs::StackSpec& stack,
                           const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      uneven_(experiment.search.uneven_stages && stack.uneven_stages &&
              !estimator.profile().options.balanced_stages),
      inside_layers_(uneven_ && experiment.search.cuts_inside_layers && stack.cuts_inside_layers),
      blocks_(specs::block_count(experiment.model)) {}

bool InnerChoices::cuts_are_free(const RegularPlacement& outer) const {
  return uneven_ && outer.pipeline > 1 && outer.virtual_stages == 1;
}

namespace {

void note_memory(const cost_models::StagePricer::Bytes& bytes, cost_models::QuickCost& cost) {
  cost.peak_device_bytes = std::max(cost.peak_device_bytes, bytes.device);
  cost.peak_host_bytes_per_node = std::max(cost.peak_host_bytes_per_node, bytes.host_per_node);
}

}  // namespace

namespace {

/// A cut that is given: what is left to choose is how many layers each rank recomputes.
class FixedCut {
 public:
  FixedCut(const cost_models::StagePricer& pricer, const RegularPlacement& outer, std::int64_t blocks)
      : pricer_(pricer),
        outer_(outer),
        blocks_(blocks),
        placement_(specs::regular_placement(outer, blocks)) {}

  std::size_t ranks() const { return static_cast<std::size_t>(placement_.pipeline_ranks()); }

  /// Layers of the rank's smallest stage.
  std::int64_t layers(std::size_t rank) const {
    std::int64_t least = blocks_;
    for (const PipelineStage& stage : placement_.stages)
      if (stage.pipeline_rank == static_cast<std::int64_t>(rank))
        least = std::min(least, specs::layers_touched(stage.units, blocks_));
    return least;
  }

  cost_models::StagePricer::Bytes memory(std::size_t rank, std::int64_t recomputed) {
    UnitCounts counts;
    for (PipelineStage& stage : placement_.stages) {
      if (stage.pipeline_rank != static_cast<std::int64_t>(rank)) continue;
      set_recomputation(outer_, blocks_, recomputed, stage);
      counts += cost_models::unit_counts(pricer_.model(), stage);
    }
    return pricer_.memory(static_cast<std::int64_t>(rank), counts);
  }

  cost_models::QuickCost price(const std::vector<std::int64_t>& recomputed) {
    std::vector<UnitCounts> of_rank(ranks());
    std::vector<StageSeconds> stages;
    for (PipelineStage& stage : placement_.stages) {
      const auto rank = static_cast<std::size_t>(stage.pipeline_rank);
      set_recomputation(outer_, blocks_, recomputed[rank], stage);
      const UnitCounts counts = cost_models::unit_counts(pricer_.model(), stage);
      of_rank[rank] += counts;
      stages.push_back(pricer_.stage(counts));
    }
    cost_models::QuickCost cost;
    std::vector<cost_models::StepEndSeconds> ends;
    for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
      ends.push_back(pricer_.end(of_rank[rank]));
      note_memory(pricer_.memory(static_cast<std::int64_t>(rank), of_rank[rank]), cost);
    }
    cost.step_seconds = pricer_.step(stages, ends);
    return cost;
  }

  /// As last priced.
  const specs::Placement& placement() const { return placement_; }

 private:
  const cost_models::StagePricer& pricer_;
  const RegularPlacement& outer_;
  std::int64_t blocks_;
  specs::Placement placement_;
};

}  // namespace

InnerChoice InnerChoices::best(const RegularPlacement& outer) const {
  if (cuts_are_free(outer))
    if (std::optional<InnerChoice> choice = best_cut(outer)) return *choice;
  return best_of_even_cut(outer);
}

std::optional<InnerChoice> InnerChoices::best_cut(const RegularPlacement& outer) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const RecomputedLayers allowed(experiment_.search, outer);
  const StageDevices devices{&pricer, estimator_.usable_device_bytes(), estimator_.usable_host_bytes()};
  StageChain chain(std::vector(static_cast<std::size_t>(outer.pipeline), devices), outer, blocks_,
                   places_for_cuts(blocks_, inside_layers_), allowed);
  const auto partition = planner::best_cut(chain, outer.recomputation != specs::Recomputation::none);
  if (!partition) return std::nullopt;
  InnerChoice choice;
  choice.least_step_seconds = partition->lower_bound;
  choice.cost.step_seconds = partition->price;
  choice.placement = specs::regular_placement(outer, blocks_);
  for (std::size_t index = 0; index < partition->parts.size(); ++index) {
    const StagePart& part = partition->parts[index];
    PipelineStage& stage = choice.placement.stages[index];
    stage.units = {part.first, part.end};
    set_recomputation(outer, blocks_, part.recomputed_layers, stage);
    note_memory(chain.memory(static_cast<std::int64_t>(index), part), choice.cost);
  }
  return choice;
}

InnerChoice InnerChoices::best_of_even_cut(const RegularPlacement& outer) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const RecomputedLayers allowed(experiment_.search, outer);
  FixedCut cut(pricer, outer, blocks_);
  const auto fewest_of = [&](std::size_t rank, bool some) {
    return allowed.fewest(cut.layers(rank), some, [&](std::int64_t count) {
      const auto bytes = cut.memory(rank, count);
      return bytes.device <= estimator_.usable_device_bytes() &&
             bytes.host_per_node <= estimator_.usable_host_bytes();
    });
  };
  std::vector<std::int64_t> counts, most;
  for (std::size_t rank = 0; rank < cut.ranks(); ++rank) {
    const std::int64_t layers = cut.layers(rank);
    const std::int64_t choices = allowed.choices(layers);
    most.push_back(choices > 0 ? allowed.at(choices - 1) : layers);
    if (const auto least = fewest_of(rank, false)) counts.push_back(*least);
  }
  bool fits = counts.size() == cut.ranks();
  const bool nowhere =
      std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
  if (fits && nowhere && outer.recomputation != specs::Recomputation::none) {
    const std::vector<std::int64_t> none = counts;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t rank = 0; rank < cut.ranks(); ++rank) {
      const auto some = fewest_of(rank, true);
      if (!some) continue;
      std::vector<std::int64_t> tried = none;
      tried[rank] = *some;
      const double seconds = cut.price(tried).step_seconds;
      if (seconds >= least) continue;
      least = seconds;
      counts = tried;
    }
    fits = std::isfinite(least);
  }
  InnerChoice choice;
  choice.cost = cut.price(fits ? counts : most);
  choice.least_step_seconds = choice.cost.step_seconds;
  choice.placement = cut.placement();
  return choice;
}

bool InnerChoices::any_fits(const RegularPlacement& outer, std::int64_t device_bytes,
                            std::int64_t host_bytes) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const RecomputedLayers allowed(experiment_.search, outer);
  if (cuts_are_free(outer)) {
    const StageDevices devices{&pricer, device_bytes, host_bytes};
    const StageChain chain(std::vector(static_cast<std::size_t>(outer.pipeline), devices), outer, blocks_,
                           places_for_cuts(blocks_, inside_layers_), allowed);
    return any_partition_fits(chain);
  }
  FixedCut cut(pricer, outer, blocks_);
  for (std::size_t rank = 0; rank < cut.ranks(); ++rank)
    if (!allowed.fewest(cut.layers(rank), false, [&](std::int64_t count) {
          const auto bytes = cut.memory(rank, count);
          return bytes.device <= device_bytes && bytes.host_per_node <= host_bytes;
        }))
      return false;
  return true;
}

InnerChoices::Fits InnerChoices::any_fits(const RegularPlacement& outer) const {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  return {any_fits(outer, estimator_.usable_device_bytes(), unlimited),
          any_fits(outer, unlimited, estimator_.usable_host_bytes())};
}

double InnerChoices::least_step_seconds(const RegularPlacement& outer) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const UnitCounts whole = cost_models::unit_counts(pricer.model(), {0, specs::unit_count(blocks_)},
                                                    specs::Recomputation::none, 0);
  const cost_models::StageSeconds work = outer.pipeline > 1 ? pricer.units(whole) : pricer.stage(whole);
  return pricer.shape().micro_batches * work.total() / static_cast<double>(outer.pipeline) + pricer.fixed();
}

Count InnerChoices::count(const RegularPlacement& outer) const {
  const bool recomputes = outer.recomputation != specs::Recomputation::none;
  const bool free = cuts_are_free(outer);
  if (!recomputes && !free) return 1;
  Count& count = counts_[{outer.pipeline, outer.virtual_stages, recomputes}];
  if (count != 0) return count;
  const RecomputedLayers allowed(experiment_.search, outer);
  Count cuts = 1;
  if (free) {
    // Choices of the stages up to each place, stage by stage.
    const std::vector<std::int64_t> places = places_for_cuts(blocks_, inside_layers_);
    std::vector<Count> choices(places.size()), ways(places.size());
    choices[0] = ways[0] = 1;
    for (std::int64_t stage = 0; stage < outer.pipeline; ++stage) {
      std::vector<Count> next(places.size()), next_ways(places.size());
      for (std::size_t end = 1; end < places.size(); ++end)
        for (std::size_t first = 0; first < end; ++first) {
          if (choices[first] == 0) continue;
          const std::int64_t layers = specs::layers_touched({places[first], places[end]}, blocks_);
          next[end] += choices[first] * allowed.choices(layers);
          next_ways[end] += ways[first];
        }
      choices = std::move(next);
      ways = std::move(next_ways);
    }
    count = choices.back();
    cuts = ways.back();
  } else {
    count = 1;
    const specs::Placement even = specs::regular_placement(outer, blocks_);
    for (std::int64_t rank = 0; rank < outer.pipeline; ++rank) {
      std::int64_t layers = blocks_;
      for (const PipelineStage& stage : even.stages)
        if (stage.pipeline_rank == rank)
          layers = std::min(layers, specs::layers_touched(stage.units, blocks_));
      count *= allowed.choices(layers);
    }
  }
  if (recomputes && allowed.allows_none()) count -= cuts;
  return count;
}

}  // namespace planner
