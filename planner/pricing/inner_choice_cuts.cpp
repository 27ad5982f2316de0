// Free cuts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planner/pricing/inner_choice.h"
#include "planner/space/placement_hash.h"

namespace planner {
namespace {

using specs::RegularPlacement;

InnerChoice given_up_at(double least_step_seconds) {
  InnerChoice choice;
  choice.least_step_seconds = least_step_seconds;
  choice.given_up = true;
  return choice;
}

}  // namespace

InnerChoice InnerChoices::of_partition(const StageChain& chain, const Partition& partition) const {
  InnerChoice choice;
  choice.least_step_seconds = partition.lower_bound;
  choice.cost.step_seconds = partition.price;
  choice.parts = partition.parts;
  for (std::size_t index = 0; index < partition.parts.size(); ++index)
    note_memory(chain.memory(static_cast<std::int64_t>(index), partition.parts[index]), choice.cost);
  return choice;
}

std::optional<InnerChoice> InnerChoices::best_cut(const RegularPlacement& outer, const Wanted& wanted) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const auto devices =
      same_devices(pricer, outer, estimator_.usable_device_bytes(), estimator_.usable_host_bytes());
  if (outer.recomputation == specs::Recomputation::none) return best_plain_cut(outer, devices, wanted);
  const bool each = numbers_are_free(outer);
  if (each && numbers_ == specs::RecomputedLayerNumbers::alike) return best_cut_alike(outer, devices, wanted);
  const RecomputedLayers allowed = each ? RecomputedLayers(experiment_.search, outer) : given_numbers(outer);
  StageChain chain(devices, outer, blocks_, pieces_, allowed);
  return best_cut_of(chain, each, wanted);
}

std::optional<InnerChoice> InnerChoices::best_cut_of(StageChain& chain, bool some,
                                                     const Wanted& wanted) const {
  if (!any_partition_within(chain, wanted.enough_seconds)) {
    if (!any_partition_fits(chain)) return std::nullopt;
    return given_up_at(wanted.enough_seconds);
  }
  return solved_cut(chain, some, wanted);
}

std::optional<InnerChoice> InnerChoices::solved_cut(StageChain& chain, bool some,
                                                    const Wanted& wanted) const {
  const auto partition = planner::best_cut(chain, some, wanted.effort, wanted.enough_seconds);
  return partition ? std::optional(of_partition(chain, *partition)) : std::nullopt;
}

// The best cut without regard to memory is the best of all where it fits, and bounds every treatment that
// adds to this one.
std::optional<InnerChoice> InnerChoices::best_plain_cut(const RegularPlacement& outer,
                                                        const std::vector<StageDevices>& devices,
                                                        const Wanted& wanted) const {
  const RecomputedLayers none(experiment_.search, outer);
  StageChain chain(devices, outer, blocks_, pieces_, none);
  if (!any_partition_within(chain, wanted.enough_seconds)) {
    if (!any_partition_fits(chain)) return std::nullopt;
    return given_up_at(wanted.enough_seconds);
  }
  // Where the even cut does not fit this one hardly does.
  if (!estimator_.fits(estimator_.quick_memory(outer))) return solved_cut(chain, false, wanted);
  const auto unlimited =
      same_devices(*devices.front().pricer, outer, StageDevices::unlimited, StageDevices::unlimited);
  StageChain free_chain(unlimited, outer, blocks_, pieces_, none);
  const auto free_partition = planner::best_cut(free_chain, false, wanted.effort, wanted.enough_seconds);
  double& bound = known_bound(outer);
  bound = std::max(bound, free_partition->lower_bound);
  InnerChoice choice = of_partition(free_chain, *free_partition);
  choice.bounds_all = true;
  if (estimator_.fits(choice.cost)) return choice;
  return solved_cut(chain, false, wanted);
}

// More layers take longer and fit better: from the fewest with which any cut fits, up to where not even the
// best cut without regard to memory is better.
std::optional<InnerChoice> InnerChoices::best_cut_alike(const RegularPlacement& outer,
                                                        const std::vector<StageDevices>& devices,
                                                        const Wanted& wanted) const {
  const std::vector<std::int64_t> numbers = numbers_alike(outer);
  const auto fits_with = [&](std::int64_t number) {
    const RecomputedLayers allowed = RecomputedLayers::of_every_stage(number);
    return StageFits(devices, outer, blocks_, pieces_, allowed).any_partition();
  };
  auto number =
      std::partition_point(numbers.begin(), numbers.end(), [&](auto count) { return !fits_with(count); });
  if (number == numbers.end()) return std::nullopt;
  const auto unlimited =
      same_devices(*devices.front().pricer, outer, StageDevices::unlimited, StageDevices::unlimited);
  std::optional<InnerChoice> best;
  double bound = std::numeric_limits<double>::infinity();
  for (; number != numbers.end(); ++number) {
    const RecomputedLayers allowed = RecomputedLayers::of_every_stage(*number);
    const double enough =
        best ? std::min(best->cost.step_seconds, wanted.enough_seconds) : wanted.enough_seconds;
    if (!any_partition_within(StageChain(unlimited, outer, blocks_, pieces_, allowed), enough)) {
      bound = std::min(bound, enough);
      break;
    }
    StageChain chain(devices, outer, blocks_, pieces_, allowed);
    const auto found = best_cut_of(chain, false, {enough, wanted.effort});
    if (!found) continue;
    bound = std::min(bound, found->least_step_seconds);
    if (!found->given_up && (!best || found->cost.step_seconds < best->cost.step_seconds)) best = found;
  }
  if (!best) return given_up_at(bound);
  best->least_step_seconds = std::min(bound, best->cost.step_seconds);
  return best;
}

// By the least limit within which any choice fits.
std::optional<InnerChoice> InnerChoices::nearest(const RegularPlacement& outer,
                                                 std::int64_t lacking_bytes) const {
  if (!cuts_are_free(outer)) return std::nullopt;
  const std::int64_t device_bytes = estimator_.usable_device_bytes();
  const std::int64_t host_bytes = estimator_.usable_host_bytes();
  const bool lacks_device = !any_fits(outer, device_bytes, StageDevices::unlimited);
  const auto limits = [&](std::int64_t lacking) {
    return lacks_device ? std::pair(device_bytes + lacking, StageDevices::unlimited)
                        : std::pair(device_bytes, host_bytes + lacking);
  };
  const auto fits_with = [&](std::int64_t lacking) {
    const auto [device, host] = limits(lacking);
    return any_fits(outer, device, host);
  };
  std::int64_t low = 0, high = lacking_bytes - 1;
  if (high < 1 || !fits_with(high)) return std::nullopt;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits_with(middle) ? high : low) = middle;
  }
  const auto [device, host] = limits(high);
  const cost_models::StagePricer pricer = estimator_.stage_pricer(outer);
  const RecomputedLayers allowed = most_recomputed(outer);
  StageChain chain(same_devices(pricer, outer, device, host), outer, blocks_, pieces_, allowed);
  const auto partition = best_partition(chain, 1, any_price, Effort::bound_alone);
  if (!partition) return std::nullopt;
  const bool recomputes = std::any_of(partition->parts.begin(), partition->parts.end(),
                                      [](const StagePart& part) { return part.recomputed_layers > 0; });
  if (!recomputes && outer.recomputation != specs::Recomputation::none) return std::nullopt;
  return of_partition(chain, *partition);
}

double& InnerChoices::known_bound(const RegularPlacement& point) const {
  auto& alike = known_[hash_of(point)];
  for (auto& [known, seconds] : alike)
    if (known == point) return seconds;
  return alike.emplace_back(point, 0.0).second;
}

bool InnerChoices::take_longer(const RegularPlacement& outer, double seconds) const {
  if (only_one(outer) || !(seconds < any_price)) return false;
  const bool each = numbers_are_free(outer) && numbers_ == specs::RecomputedLayerNumbers::each;
  if (each || !cuts_are_free(outer)) {
    const RegularPlacement plain = recomputing_nothing(outer);
    double& known = known_bound(plain);
    if (known > seconds) return true;
    if (!cuts_are_free(outer)) {
      if (known == 0) known = estimator_.quick(plain).step_seconds;
      return known > seconds;
    }
    return longer_with(plain, RecomputedLayers(experiment_.search, plain), seconds, known);
  }
  double& known = known_bound(outer);
  if (known > seconds) return true;
  if (!numbers_are_free(outer)) return longer_with(outer, given_numbers(outer), seconds, known);
  const std::vector<std::int64_t> numbers = numbers_alike(outer);
  if (numbers.empty()) return false;
  return longer_with(outer, RecomputedLayers::of_every_stage(numbers.front()), seconds, known);
}

bool InnerChoices::longer_with(const RegularPlacement& point, const RecomputedLayers& numbers, double seconds,
                               double& known) const {
  const cost_models::StagePricer pricer = estimator_.stage_pricer(point);
  const auto unlimited = same_devices(pricer, point, StageDevices::unlimited, StageDevices::unlimited);
  if (any_partition_within(StageChain(unlimited, point, blocks_, pieces_, numbers), seconds)) return false;
  known = std::nextafter(seconds, any_price);
  return true;
}

}  // namespace planner
