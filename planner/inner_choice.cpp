#include "planner/inner_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace planner {
namespace {

using cost_models::StageSeconds;
using cost_models::UnitCounts;
using specs::PipelineStage;
using specs::RegularPlacement;
using specs::ScheduleKind;

/// The units of a stage with its first `recomputed` layers recomputed.
void set_recomputation(const RegularPlacement& outer, std::int64_t blocks, std::int64_t recomputed,
                       PipelineStage& stage) {
  stage.recomputation.clear();
  if (recomputed == 0) return;
  const std::int64_t touched = specs::layers_touched(stage.units, blocks);
  stage.recomputation.push_back(
      {.layers = recomputed, .mode = outer.recomputation, .modules = outer.recomputed_modules});
  if (recomputed < touched)
    stage.recomputation.push_back({.layers = touched - recomputed, .mode = specs::Recomputation::none});
}

/// Which numbers of recomputed layers a stage may have.
class RecomputedLayers {
 public:
  RecomputedLayers(const specs::SearchSpec& search, const RegularPlacement& outer)
      : any_(search.recomputed_layers.empty()), list_(search.recomputed_layers) {
    if (outer.recomputation == specs::Recomputation::none) {
      any_ = false;
      list_ = {0};
    }
    std::sort(list_.begin(), list_.end());
    list_.erase(std::unique(list_.begin(), list_.end()), list_.end());
  }

  std::int64_t choices(std::int64_t layers) const {
    return any_ ? layers + 1 : std::upper_bound(list_.begin(), list_.end(), layers) - list_.begin();
  }
  /// The choice of that index, ascending.
  std::int64_t at(std::int64_t index) const { return any_ ? index : list_[static_cast<std::size_t>(index)]; }
  bool allows_none() const { return any_ || (!list_.empty() && list_.front() == 0); }

 private:
  bool any_;
  std::vector<std::int64_t> list_;
};

/// The fewest layers of the choices for which `fits` holds; with `some` at least one. The first recomputed
/// layer may cost more than it frees (it is whole again while its backward pass runs); from then on more
/// never fit worse.
template <class Fits>
std::optional<std::int64_t> fewest(const RecomputedLayers& allowed, std::int64_t layers, bool some,
                                   Fits&& fits) {
  const bool none = allowed.allows_none();
  if (none && !some && fits(0)) return 0;
  std::int64_t low = none ? 1 : 0, high = allowed.choices(layers) - 1;
  if (high < low || !fits(allowed.at(high))) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fits(allowed.at(middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return allowed.at(low);
}

/// Stages of an outer point with one stage a rank, as a chain to be cut.
class StageChain final : public PartitionProblem {
 public:
  StageChain(const cost_models::StagePricer& pricer, const RegularPlacement& outer, std::int64_t blocks,
             std::vector<std::int64_t> places, const RecomputedLayers& allowed, std::int64_t device_bytes,
             std::int64_t host_bytes)
      : pricer_(pricer),
        outer_(outer),
        blocks_(blocks),
        places_(std::move(places)),
        allowed_(allowed),
        device_bytes_(device_bytes),
        host_bytes_(host_bytes),
        micro_batches_(pricer.shape().micro_batches),
        ranks_(outer.pipeline),
        halves_(std::any_of(places_.begin() + 1, places_.end() - 1,
                            [](std::int64_t place) { return place % 2 == 0; })),
        before_(static_cast<std::size_t>(places_.back()) + 1),
        after_(before_.size()) {
    for (const std::int64_t place : places_) {
      before_[static_cast<std::size_t>(place)] = seconds_of({0, place, 0});
      after_[static_cast<std::size_t>(place)] = seconds_of({place, places_.back(), 0});
    }
    if (allowed.choices(blocks) > 1) least_repeated_ = least_repeated_layer();
    // Updates take time in proportion to a rank's parameters: the longest is no shorter than the mean.
    everywhere_ =
        pricer.fixed() + pricer.end(counts_of({0, places_.back(), 0})).update() / static_cast<double>(ranks_);
  }

  /// From now on this stage recomputes at least one layer.
  void recompute_in(std::int64_t stage) {
    recomputing_ = stage;
    fitted_.clear();
  }

  std::int64_t stages() const override { return ranks_; }
  std::span<const std::int64_t> places() const override { return places_; }

  std::optional<StagePart> fitted(std::int64_t stage, std::int64_t first, std::int64_t end) const override {
    const std::int64_t key = (stage * before_size() + first) * before_size() + end;
    const auto [entry, unknown] = fitted_.try_emplace(key);
    if (unknown) {
      const std::int64_t layers = specs::layers_touched({first, end}, blocks_);
      const std::optional<std::int64_t> recomputed =
          fewest(allowed_, layers, stage == recomputing_, [&](std::int64_t count) {
            return fits(stage, {first, end, count});
          });
      if (recomputed) entry->second = StagePart{first, end, *recomputed};
    }
    return entry->second;
  }

  double bound(std::int64_t stage, const StagePart& part) const override {
    // A part that starts later may begin with a whole layer where the longer one began with half of one: that
    // the bound never grows with it, only layers that are surely whole count, each as the quickest to repeat.
    const double halves = halves_ ? 2 : 0;
    const double repeated =
        std::max(0.0, static_cast<double>(part.recomputed_layers) - halves) * least_repeated_;
    const double work = seconds_of({part.first, part.end, 0}).total() + repeated;
    return everywhere_ + pipeline_bound(static_cast<double>(stage), part, work);
  }

  double added_by_first(std::int64_t end) const override {
    // The last backward pass of the step is stage 0's; under the zero-bubble schedules it may end before
    // others.
    if (zero_bubble()) return 0;
    return pricer_.end(counts_of({0, end, 0})).gradient_reduction;
  }

  double price(std::span<const StagePart> parts) const override {
    std::vector<StageSeconds> stages;
    std::vector<cost_models::StepEndSeconds> ends;
    for (const StagePart& part : parts) {
      const UnitCounts counts = counts_of(part);
      stages.push_back(pricer_.stage(counts));
      ends.push_back(pricer_.end(counts));
    }
    return pricer_.step(stages, ends);
  }

  cost_models::StagePricer::Bytes memory(std::int64_t stage, const StagePart& part) const {
    return pricer_.memory(stage, counts_of(part));
  }

 private:
  std::int64_t before_size() const { return static_cast<std::int64_t>(before_.size()); }
  bool zero_bubble() const {
    return outer_.schedule == ScheduleKind::zero_bubble_h1 || outer_.schedule == ScheduleKind::zero_bubble_h2;
  }

  UnitCounts counts_of(const StagePart& part) const {
    scratch_.units = {part.first, part.end};
    set_recomputation(outer_, blocks_, part.recomputed_layers, scratch_);
    return cost_models::unit_counts(pricer_.model(), scratch_);
  }
  StageSeconds seconds_of(const StagePart& part) const { return pricer_.stage(counts_of(part)); }

  double least_repeated_layer() const {
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t layer = 0; layer < blocks_; ++layer) {
      const std::int64_t first = specs::attention_unit(layer);
      const double repeated =
          seconds_of({first, first + 2, 1}).total() - seconds_of({first, first + 2, 0}).total();
      least = std::min(least, repeated);
    }
    return least;
  }

  bool fits(std::int64_t stage, const StagePart& part) const {
    const auto bytes = memory(stage, part);
    return bytes.device <= device_bytes_ && bytes.host_per_node <= host_bytes_;
  }

  // Lower bounds of the critical path, each the length of a path through the schedule. With w = p − i
  // micro-batches in flight on stage i of 1F1B, B(k) comes before F(k + w) there: a path may take the round
  // trip from F(k) down to the last stage and back to B(k), R seconds, x times, advancing w micro-batches
  // each time, and stay on the rank for the rest. At least one round trip is taken, since the rank's order
  // leads from F(k) to B(k − w + 1). It is largest with x = 1 or with as many as there are.
  double pipeline_bound(double stage, const StagePart& part, double work) const {
    if (ranks_ == 1) return micro_batches_ * work;
    const double transfer = pricer_.transfer_seconds();
    const StageSeconds& before = before_[static_cast<std::size_t>(part.first)];
    const double after = after_[static_cast<std::size_t>(part.end)].total();
    const double ranks = static_cast<double>(ranks_);
    if (zero_bubble()) return before.forward + stage * transfer + micro_batches_ * work;
    const double once = before.total() + work + after + 2 * (ranks - 1) * transfer;
    if (outer_.schedule == ScheduleKind::gpipe)
      return once + (micro_batches_ - 1) * std::max(work, 2 * transfer);
    double largest = before.total() + 2 * stage * transfer + micro_batches_ * work;
    const double in_flight = ranks - stage;
    const double round_trip = work + after + 2 * (ranks - 1 - stage) * transfer;
    const double most_trips = std::floor((micro_batches_ - 1) / in_flight);
    for (const double trips : {1.0, most_trips})
      if (trips >= 1 && trips <= most_trips)
        largest =
            std::max(largest, once + trips * round_trip + (micro_batches_ - 1 - trips * in_flight) * work);
    return std::max(largest, once);
  }

  const cost_models::StagePricer& pricer_;
  const RegularPlacement& outer_;
  const std::int64_t blocks_;
  const std::vector<std::int64_t> places_;
  const RecomputedLayers& allowed_;
  const std::int64_t device_bytes_, host_bytes_;
  const double micro_batches_;
  const std::int64_t ranks_;
  const bool halves_;  ///< whether cuts fall inside layers
  std::int64_t recomputing_ = -1;
  double least_repeated_ = 0;
  double everywhere_ = 0;
  std::vector<StageSeconds> before_, after_;  ///< of all units before and from a place, none recomputed
  mutable PipelineStage scratch_;
  mutable std::unordered_map<std::int64_t, std::optional<StagePart>> fitted_;
};

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

/// Begin of the chain, places for cuts, its end.
std::vector<std::int64_t> free_places(std::int64_t blocks, bool inside_layers) {
  std::vector<std::int64_t> places{0};
  for (std::int64_t layer = 0; layer < blocks; ++layer) {
    if (layer > 0) places.push_back(specs::attention_unit(layer));
    if (inside_layers) places.push_back(specs::feed_forward_unit(layer));
  }
  places.push_back(specs::unit_count(blocks));
  return places;
}

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

bool recomputes_nowhere(const Partition& partition) {
  return std::all_of(partition.parts.begin(), partition.parts.end(),
                     [](const StagePart& part) { return part.recomputed_layers == 0; });
}

/// The best of the chain's partitions; with `some` of those that recompute somewhere.
std::optional<Partition> solve(StageChain& chain, bool some) {
  constexpr std::int64_t visit_limit = 64;
  std::optional<Partition> best = best_partition(chain, visit_limit);
  if (!some || !best || !recomputes_nowhere(*best)) return best;
  best.reset();
  for (std::int64_t stage = 0; stage < chain.stages(); ++stage) {
    chain.recompute_in(stage);
    const std::optional<Partition> found = best_partition(chain, visit_limit);
    if (!found) continue;
    const double bound = best ? std::min(best->lower_bound, found->lower_bound) : found->lower_bound;
    if (!best || found->price < best->price) best = found;
    best->lower_bound = bound;
  }
  return best;
}

}  // namespace

InnerChoice InnerChoices::best(const RegularPlacement& outer) const {
  if (cuts_are_free(outer))
    if (std::optional<InnerChoice> choice = best_cut(outer)) return *choice;
  return best_of_even_cut(outer);
}

std::optional<InnerChoice> InnerChoices::best_cut(const RegularPlacement& outer) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const RecomputedLayers allowed(experiment_.search, outer);
  StageChain chain(pricer, outer, blocks_, free_places(blocks_, inside_layers_), allowed,
                   estimator_.usable_device_bytes(), estimator_.usable_host_bytes());
  const auto partition = solve(chain, outer.recomputation != specs::Recomputation::none);
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
    return fewest(allowed, cut.layers(rank), some, [&](std::int64_t count) {
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
    const std::vector<std::int64_t> places = free_places(blocks_, inside_layers_);
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
