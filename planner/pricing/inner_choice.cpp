#include "planner/pricing/inner_choice.h"

#include <algorithm>
#include <vector>

namespace planner {
namespace {

using cost_models::UnitCounts;
using specs::PipelineStage;
using specs::RegularPlacement;

}  // namespace

InnerChoices::InnerChoices(const specs::Experiment& experiment, const specs::StackSpec& stack,
                           const cost_models::Estimator& estimator)
    : experiment_(experiment),
      estimator_(estimator),
      numbers_(stack.recomputed_layers),
      uneven_(experiment.search.uneven_stages && stack.uneven_stages &&
              !estimator.profile().options.balanced_stages),
      inside_layers_(uneven_ && experiment.search.cuts_inside_layers && stack.cuts_inside_layers),
      blocks_(specs::block_count(experiment.model)),
      pieces_(experiment.model, inside_layers_) {}

bool InnerChoices::cuts_are_free(const RegularPlacement& outer) const {
  return uneven_ && outer.pipeline > 1 && outer.virtual_stages == 1;
}

bool InnerChoices::numbers_are_free(const RegularPlacement& outer) const {
  if (outer.recomputation == specs::Recomputation::none) return false;
  return numbers_ == specs::RecomputedLayerNumbers::each ||
         (numbers_ == specs::RecomputedLayerNumbers::alike &&
          outer.recomputation == specs::Recomputation::full);
}

bool InnerChoices::only_one(const RegularPlacement& outer) const {
  return !cuts_are_free(outer) && !numbers_are_free(outer);
}

RecomputedLayers InnerChoices::given_numbers(const RegularPlacement& outer) const {
  if (outer.recomputation == specs::Recomputation::none) return {experiment_.search, outer};
  return RecomputedLayers::of_every_stage(blocks_);
}

std::vector<std::int64_t> InnerChoices::numbers_alike(const RegularPlacement& outer) const {
  const std::int64_t stages = outer.pipeline * outer.virtual_stages;
  const std::int64_t most = (blocks_ + stages - 1) / stages;
  const std::vector<std::int64_t>& wanted = experiment_.search.recomputed_layers;
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 1; number <= most; ++number)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), number) != wanted.end())
      numbers.push_back(number);
  return numbers;
}

InnerChoice InnerChoices::best(const RegularPlacement& outer, double enough_seconds, Effort effort) const {
  const Wanted wanted{std::min(enough_seconds, any_price), effort};
  if (!only_one(outer))
    if (std::optional<InnerChoice> choice =
            cuts_are_free(outer) ? best_cut(outer, wanted) : best_of_even_cut(outer, wanted))
      return *choice;
  InnerChoice even;
  even.cost = estimator_.quick(outer);
  even.least_step_seconds = even.cost.step_seconds;
  even.bounds_all = only_one(outer);
  // Where [search] names the numbers it may be none of the choices, which do not fit.
  if (!only_one(outer) && outer.recomputation != specs::Recomputation::none &&
      !experiment_.search.recomputed_layers.empty())
    even.cost.peak_device_bytes = std::max(even.cost.peak_device_bytes, estimator_.usable_device_bytes() + 1);
  return even;
}

specs::Placement InnerChoices::placement(const RegularPlacement& outer, const InnerChoice& choice) const {
  specs::Placement placement = specs::regular_placement(outer, blocks_);
  for (std::size_t index = 0; index < choice.parts.size(); ++index) {
    const StagePart& part = choice.parts[index];
    PipelineStage& stage = placement.stages[index];
    stage.units = {part.first, part.end};
    set_recomputation(outer, blocks_, part.recomputed_layers, stage);
  }
  return placement;
}

RecomputedLayers InnerChoices::most_recomputed(const RegularPlacement& outer) const {
  if (!numbers_are_free(outer)) return given_numbers(outer);
  if (numbers_ == specs::RecomputedLayerNumbers::alike)
    if (const std::vector<std::int64_t> numbers = numbers_alike(outer); !numbers.empty())
      return RecomputedLayers::of_every_stage(numbers.back());
  return {experiment_.search, outer};
}

bool InnerChoices::any_fits(const RegularPlacement& outer, std::int64_t device_bytes,
                            std::int64_t host_bytes) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const bool alike = numbers_ == specs::RecomputedLayerNumbers::alike;
  if (cuts_are_free(outer)) {
    const RecomputedLayers allowed = most_recomputed(outer);
    return StageFits(same_devices(pricer, outer, device_bytes, host_bytes), outer, blocks_, pieces_, allowed)
        .any_partition();
  }
  const FixedCut cut(pricer, even_cut(outer));
  const auto fits = [&](std::size_t rank, std::int64_t count) {
    const auto bytes = cut.memory(rank, count);
    return bytes.device <= device_bytes && bytes.host_per_node <= host_bytes;
  };
  const RecomputedLayers allowed(experiment_.search, outer);
  const std::int64_t most_alike = alike ? numbers_alike(outer).back() : 0;
  for (std::size_t rank = 0; rank < cut.ranks(); ++rank) {
    const bool fitting =
        alike ? fits(rank, most_alike)
              : allowed.fewest(cut.layers(rank), false, [&](std::int64_t count) { return fits(rank, count); })
                    .has_value();
    if (!fitting) return false;
  }
  return true;
}

InnerChoices::Fits InnerChoices::any_fits(const RegularPlacement& outer) const {
  const std::int64_t device_bytes = estimator_.usable_device_bytes();
  const std::int64_t host_bytes = estimator_.usable_host_bytes();
  // The even cut, all layers treated alike, is one of the choices unless [search] names numbers.
  const cost_models::QuickCost even = estimator_.quick_memory(outer);
  const bool device = even.peak_device_bytes <= device_bytes;
  const bool host = even.peak_host_bytes_per_node <= host_bytes;
  const bool even_is_a_choice =
      outer.recomputation == specs::Recomputation::none || experiment_.search.recomputed_layers.empty();
  // With one number for all stages nothing else needs less.
  const bool least = !cuts_are_free(outer) && numbers_ != specs::RecomputedLayerNumbers::each;
  if (only_one(outer) || (even_is_a_choice && (least || (device && host)))) return {device, host};
  return {any_fits(outer, device_bytes, StageDevices::unlimited),
          any_fits(outer, StageDevices::unlimited, host_bytes)};
}

RegularPlacement InnerChoices::recomputing_nothing(const RegularPlacement& outer) {
  RegularPlacement plain = outer;
  plain.recomputation = specs::Recomputation::none;
  plain.recomputed_modules = 0;
  return plain;
}

double InnerChoices::least_step_seconds(const RegularPlacement& outer) const {
  if (only_one(outer)) return estimator_.quick_bound(outer);
  const RegularPlacement plain = recomputing_nothing(outer);
  if (!cuts_are_free(outer)) return estimator_.quick_bound(plain);
  const cost_models::StagePricer pricer = estimator_.stage_pricer(plain);
  const UnitCounts whole = cost_models::unit_counts(pricer.model(), {0, specs::unit_count(blocks_)},
                                                    specs::Recomputation::none, 0);
  const double ranks = static_cast<double>(outer.pipeline);
  return pricer.shape().micro_batches * pricer.units(whole).total() / ranks +
         pricer.end(whole).update() / ranks + pricer.fixed();
}

}  // namespace planner
