#include "planner/pricing/stage_partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planner {
namespace {

/// Indices into the problem's places, where stages end.
using Ends = std::vector<std::size_t>;

class Partitioner {
 public:
  Partitioner(const PartitionProblem& problem, std::int64_t visit_limit)
      : problem_(problem),
        places_(problem.places()),
        stages_(static_cast<std::size_t>(problem.stages())),
        visits_left_(visit_limit) {}

  /// Every stage as long as it may be: where that does not reach the end, nothing does.
  bool any_fits() const {
    if (places_.size() < stages_ + 1) return false;
    constexpr double anything = std::numeric_limits<double>::max();
    if (stages_ == 1) return within(0, 0, last_place(), anything);
    if (!within(0, 0, 1, anything)) return false;
    return !filled(reach(0, 0, 1, farthest_end(0), anything), anything).empty();
  }

  bool any_within(double seconds) const {
    if (places_.size() < stages_ + 1) return false;
    const std::size_t earliest = stages_ == 1 ? last_place() : 1;
    for (std::size_t first_end = earliest; first_end <= farthest_end(0); ++first_end) {
      const double threshold = seconds - problem_.added_by_first(places_[first_end]);
      if (!within(0, 0, first_end, threshold)) return false;
      if (!filled(first_end, threshold).empty()) return true;
    }
    return false;
  }

  std::optional<Partition> start() {
    if (!any_fits()) return std::nullopt;
    const double least = least_bound();
    if (ends_.empty()) return std::nullopt;
    Partition found{parts_of(ends_), 0, least};
    found.price = problem_.price(found.parts);
    return found;
  }

  Partition run_from(const Partition& start) {
    best_ = start;
    const double least = start.lower_bound;
    ends_.clear();
    for (const StagePart& part : start.parts)
      ends_.push_back(static_cast<std::size_t>(std::lower_bound(places_.begin(), places_.end(), part.end) -
                                               places_.begin()));
    move_single_cuts();
    const bool visited_all = best_.price <= least || visit_all();
    best_.lower_bound = visited_all ? best_.price : std::min(least, best_.price);
    return best_;
  }

 private:
  std::size_t last_place() const { return places_.size() - 1; }
  /// Stages after `stage` each need a place of their own.
  std::size_t farthest_end(std::size_t stage) const { return last_place() - (stages_ - 1 - stage); }

  double bound(std::size_t stage, std::size_t first, std::size_t end) const {
    const auto part = problem_.fitted(static_cast<std::int64_t>(stage), places_[first], places_[end]);
    return part ? problem_.bound(static_cast<std::int64_t>(stage), *part)
                : std::numeric_limits<double>::infinity();
  }
  bool within(std::size_t stage, std::size_t first, std::size_t end, double threshold) const {
    return bound(stage, first, end) <= threshold;
  }

  /// The largest end in [least, most] within the threshold, given that `least` is.
  std::size_t reach(std::size_t stage, std::size_t first, std::size_t least, std::size_t most,
                    double threshold) const {
    while (least < most) {
      const std::size_t middle = least + (most - least + 1) / 2;
      if (within(stage, first, middle, threshold))
        least = middle;
      else
        most = middle - 1;
    }
    return least;
  }

  /// Ends of all stages where each takes what it may, the first one up to `first_end`; empty: out of reach.
  Ends filled(std::size_t first_end, double threshold) const {
    if (!within(0, 0, first_end, threshold)) return {};
    Ends ends{first_end};
    for (std::size_t stage = 1; stage < stages_; ++stage) {
      const std::size_t first = ends.back();
      const bool last = stage + 1 == stages_;
      const std::size_t least = last ? last_place() : first + 1;
      if (!within(stage, first, least, threshold)) return {};
      ends.push_back(last ? least : reach(stage, first, least, farthest_end(stage), threshold));
    }
    return ends.back() == last_place() ? ends : Ends{};
  }

  double largest_bound(const Ends& ends) const {
    double largest = 0;
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      largest = std::max(largest, bound(stage, first, ends[stage]));
      first = ends[stage];
    }
    return largest;
  }

  /// B* of the header; leaves a partition that attains it in `ends_`.
  double least_bound() {
    double best = std::numeric_limits<double>::infinity();
    const std::size_t earliest = stages_ == 1 ? last_place() : 1;
    for (std::size_t first_end = earliest; first_end <= farthest_end(0); ++first_end) {
      const double added = problem_.added_by_first(places_[first_end]);
      const double own = bound(0, 0, first_end);
      if (!(own + added < best)) break;
      const double least = least_bound_from(first_end, own, best - added);
      best = std::min(best, least + added);
    }
    return best;
  }

  /// The least bound below `cutoff` of the partitions whose first stage ends there, whose own bound is `own`;
  /// infinite where there is none.
  double least_bound_from(std::size_t first_end, double own, double cutoff) {
    constexpr double narrow = 1e-7;
    const auto just_below = [](double value) { return std::nextafter(value, 0.0); };
    const double most = std::min(just_below(cutoff), std::numeric_limits<double>::max());
    Ends ends = filled(first_end, most);
    if (ends.empty()) return std::numeric_limits<double>::infinity();
    double attained = largest_bound(ends);
    for (double out_of_reach = own; attained > out_of_reach;) {
      const bool last_try = attained - out_of_reach <= narrow * attained;
      const double tried = last_try ? just_below(attained) : (out_of_reach + attained) / 2;
      Ends better = filled(first_end, tried);
      if (better.empty() && last_try) break;
      if (better.empty()) {
        out_of_reach = tried;
      } else {
        ends = std::move(better);
        attained = largest_bound(ends);
      }
    }
    ends_ = ends;
    return attained;
  }

  std::vector<StagePart> parts_of(const Ends& ends) const {
    std::vector<StagePart> parts;
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      parts.push_back(
          *problem_.fitted(static_cast<std::int64_t>(stage), places_[first], places_[ends[stage]]));
      first = ends[stage];
    }
    return parts;
  }

  /// Prices the partition if it fits; true where it is better than the best.
  bool improves(const Ends& ends) {
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      if (std::isinf(bound(stage, first, ends[stage]))) return false;
      first = ends[stage];
    }
    std::vector<StagePart> parts = parts_of(ends);
    const double price = problem_.price(parts);
    if (price >= best_.price) return false;
    best_.price = price;
    best_.parts = std::move(parts);
    ends_ = ends;
    return true;
  }

  void move_single_cuts() {
    constexpr int most_rounds = 8;
    bool moved = true;
    for (int round = 0; moved && round < most_rounds; ++round) {
      moved = false;
      for (std::size_t cut = 0; cut + 1 < stages_; ++cut)
        for (const int step : {-1, 1}) {
          Ends ends = ends_;
          ends[cut] += static_cast<std::size_t>(step);
          const std::size_t before = cut == 0 ? 0 : ends[cut - 1];
          if (ends[cut] <= before || ends[cut] >= ends[cut + 1]) continue;
          moved = improves(ends) || moved;
        }
    }
  }

  /// Where each stage may begin at the earliest, so that it and all after it stay within the threshold.
  std::vector<std::size_t> earliest_starts(double threshold) const {
    std::vector<std::size_t> starts(stages_ + 1, last_place());
    for (std::size_t stage = stages_; stage-- > 0;) {
      const std::size_t end = starts[stage + 1];
      std::size_t low = stage, start = end;
      while (low < start) {
        const std::size_t middle = low + (start - low) / 2;
        if (within(stage, middle, end, threshold))
          start = middle;
        else
          low = middle + 1;
      }
      starts[stage] = start;
    }
    return starts;
  }

  /// Every partition whose bound is below the best price; false where the limit came first.
  bool visit_all() {
    Ends ends;
    return visit_from(0, 0, ends, earliest_starts(std::nextafter(best_.price, 0.0)));
  }

  bool visit_from(std::size_t stage, std::size_t first, Ends& ends, const std::vector<std::size_t>& starts) {
    if (stage == stages_) {
      if (visits_left_-- <= 0) return false;
      improves(ends);
      return true;
    }
    const bool last = stage + 1 == stages_;
    const std::size_t least = last ? last_place() : std::max(first + 1, starts[stage + 1]);
    const std::size_t most = last ? last_place() : farthest_end(stage);
    for (std::size_t end = least; end <= most; ++end) {
      double threshold = best_.price;
      threshold -= problem_.added_by_first(places_[stage == 0 ? end : ends.front()]);
      if (!(bound(stage, first, end) < threshold)) break;
      ends.push_back(end);
      const bool complete = visit_from(stage + 1, end, ends, starts);
      ends.pop_back();
      if (!complete) return false;
    }
    return true;
  }

  const PartitionProblem& problem_;
  const std::span<const std::int64_t> places_;
  const std::size_t stages_;
  std::int64_t visits_left_;
  Ends ends_;
  Partition best_;
};

}  // namespace

bool any_partition_fits(const PartitionProblem& problem) { return Partitioner(problem, 0).any_fits(); }

bool any_partition_within(const PartitionProblem& problem, double seconds) {
  return Partitioner(problem, 0).any_within(seconds);
}

std::optional<Partition> least_bound_partition(const PartitionProblem& problem) {
  return Partitioner(problem, 0).start();
}

Partition best_partition_from(const PartitionProblem& problem, const Partition& start,
                              std::int64_t visit_limit) {
  return Partitioner(problem, visit_limit).run_from(start);
}

std::optional<Partition> best_partition(const PartitionProblem& problem, std::int64_t visit_limit) {
  const std::optional<Partition> start = least_bound_partition(problem);
  if (!start) return std::nullopt;
  return best_partition_from(problem, *start, visit_limit);
}

}  // namespace planner
