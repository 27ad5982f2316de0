#include "planner/pricing/partition_thresholds.h"

#include <algorithm>
#include <cmath>

namespace planner {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<StagePart> PartitionThresholds::parts_of(const StageEnds& ends) const {
  std::vector<StagePart> parts;
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < stages_; ++stage) {
    parts.push_back(*part(stage, first, ends[stage]));
    first = ends[stage];
  }
  return parts;
}

double PartitionThresholds::after_first(std::size_t end) const {
  const auto first = part(0, 0, end);
  return first ? problem_.after(0, *first) : 0;
}

PartitionThresholds::Threshold PartitionThresholds::threshold(double seconds, std::size_t first_end) const {
  return {seconds, goes_back_ ? seconds - after_first(first_end) : never};
}

bool PartitionThresholds::stays(std::size_t stage, std::size_t first, std::size_t end,
                                const Threshold& threshold) const {
  const auto held = part(stage, first, end);
  if (!held) return false;
  const auto number = static_cast<std::int64_t>(stage);
  const double path = problem_.path(number, *held);
  if (goes_back_ && path + problem_.back(number, held->first) > threshold.back) return false;
  if (stage == 0 && goes_back_) return true;  // what it does by itself is taken off already
  return path <= threshold.own && path + problem_.after(number, *held) <= threshold.own;
}

double PartitionThresholds::taken(std::size_t stage, std::size_t first, std::size_t end,
                                  double after_first) const {
  const auto held = part(stage, first, end);
  if (!held) return never;
  const auto number = static_cast<std::int64_t>(stage);
  const double path = problem_.path(number, *held);
  const double own = path + problem_.after(number, *held);
  return goes_back_ ? std::max(own, path + problem_.back(number, held->first) + after_first) : own;
}

double PartitionThresholds::taken(const StageEnds& ends) const {
  const double after = goes_back_ ? after_first(ends.front()) : 0;
  double largest = 0;
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < stages_; ++stage) {
    largest = std::max(largest, taken(stage, first, ends[stage], after));
    first = ends[stage];
  }
  return largest;
}

/// The largest end in [least, most] that stays within, given that `least` does.
std::size_t PartitionThresholds::reach(std::size_t stage, std::size_t first, std::size_t least,
                                       std::size_t most, const Threshold& threshold) const {
  // Most stages hold about as much as the one before: steps that double from there find the end soonest.
  std::size_t step = 1;
  while (least < most && stays(stage, first, std::min(least + step, most), threshold)) {
    least = std::min(least + step, most);
    step *= 2;
  }
  most = std::min(most, least + step - 1);
  while (least < most) {
    const std::size_t middle = least + (most - least + 1) / 2;
    if (stays(stage, first, middle, threshold))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

/// `end` where the stage cannot end there within the threshold.
std::size_t PartitionThresholds::earliest_start(std::size_t stage, std::size_t end,
                                                const Threshold& threshold) const {
  std::size_t start = end, step = 1;
  while (start > stage) {
    const std::size_t tried = start - std::min(step, start - stage);
    if (!stays(stage, tried, end, threshold)) break;
    start = tried;
    step *= 2;
  }
  std::size_t low = start - std::min(step, start - stage);
  while (low < start) {
    const std::size_t middle = low + (start - low) / 2;
    if (stays(stage, middle, end, threshold))
      start = middle;
    else
      low = middle + 1;
  }
  return start;
}

bool PartitionThresholds::any_fits() const {
  if (places_.size() < stages_ + 1) return false;
  const Threshold anything{any_price, any_price};
  if (stages_ == 1) return part(0, 0, last_place()).has_value();
  if (!stays(0, 0, 1, anything)) return false;
  return !filled(reach(0, 0, 1, farthest_end(0), anything), anything).empty();
}

/// Ends of all stages where each takes what it may, the first one up to `first_end`; empty: out of reach.
StageEnds PartitionThresholds::filled(std::size_t first_end, const Threshold& threshold) const {
  if (!stays(0, 0, first_end, threshold)) return {};
  StageEnds ends{first_end};
  for (std::size_t stage = 1; stage < stages_; ++stage) {
    const std::size_t first = ends.back();
    const bool last = stage + 1 == stages_;
    const std::size_t least = last ? last_place() : first + 1;
    if (!stays(stage, first, least, threshold)) return {};
    ends.push_back(last ? least : reach(stage, first, least, farthest_end(stage), threshold));
  }
  return ends.back() == last_place() ? ends : StageEnds{};
}

/// Where the second stage starts at the earliest, so that it and all after it stay within the threshold.
std::optional<std::size_t> PartitionThresholds::earliest_second(const Threshold& threshold) const {
  std::size_t end = last_place();
  for (std::size_t stage = stages_; stage-- > 1;) {
    const std::size_t start = earliest_start(stage, end, threshold);
    if (start == end) return std::nullopt;
    end = start;
  }
  return end;
}

/// The smallest end of the first stage among the partitions that stay within.
std::optional<std::size_t> PartitionThresholds::first_end_within(double seconds) const {
  if (stages_ == 1)
    return stays(0, 0, last_place(), threshold(seconds, last_place())) ? std::optional(last_place())
                                                                       : std::nullopt;
  std::size_t end = 1;
  for (;;) {
    const Threshold left = threshold(seconds, end);
    const std::optional<std::size_t> second = earliest_second(left);
    if (!second) return std::nullopt;
    if (*second <= end) return stays(0, 0, end, left) ? std::optional(end) : std::nullopt;
    end = *second;
  }
}

StageEnds PartitionThresholds::within(double seconds) const {
  if (places_.size() < stages_ + 1) return {};
  const std::optional<std::size_t> first_end = first_end_within(seconds);
  return first_end ? filled(*first_end, threshold(seconds, *first_end)) : StageEnds{};
}

PartitionThresholds::Least PartitionThresholds::least(double tolerance) const {
  Least least;
  least.ends = any_fits() ? within(any_price) : StageEnds{};
  if (least.ends.empty()) return least;
  double attained = taken(least.ends);
  while (attained - least.seconds > tolerance * attained) {
    const double tried = least.seconds == 0 ? attained * 0.95 : (least.seconds + attained) / 2;
    StageEnds ends = within(tried);
    if (ends.empty()) {
      least.seconds = tried;
    } else {
      least.ends = std::move(ends);
      attained = std::min(taken(least.ends), tried);
    }
  }
  return least;
}

std::vector<std::size_t> PartitionThresholds::earliest_starts(double seconds) const {
  std::vector<std::size_t> starts(stages_ + 1, last_place());
  // However the first stage ends, it adds what it adds at its shortest.
  const Threshold left = threshold(seconds, 1);
  for (std::size_t stage = stages_; stage-- > 1;)
    starts[stage] = earliest_start(stage, starts[stage + 1], left);
  starts[0] = 0;
  return starts;
}

}  // namespace planner
