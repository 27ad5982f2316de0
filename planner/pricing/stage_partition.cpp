#include "planner/pricing/stage_partition.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "planner/pricing/partition_layers.h"
#include "planner/pricing/partition_thresholds.h"

namespace planner {
namespace {

class PartitionSearch {
 public:
  PartitionSearch(const PartitionProblem& problem, std::int64_t most_prices, double enough)
      : problem_(problem),
        thresholds_(problem),
        layers_(problem, thresholds_),
        prices_left_(most_prices),
        enough_(enough) {}

  std::optional<Partition> run(Effort effort) {
    const bool whole = effort != Effort::bound_alone;
    const PartitionThresholds::Least rough = thresholds_.least(whole ? fine : coarse);
    if (rough.ends.empty()) return std::nullopt;
    best_.parts = thresholds_.parts_of(rough.ends);
    best_.price = problem_.price(best_.parts);
    ends_ = rough.ends;
    double least = rough.seconds;
    if (best_.price > least) least = raise(least, whole ? fine : coarse);
    if (whole && prices_left_ > 0 && least < limit()) {
      move_single_cuts();
      if (least < limit() && visit_all()) least = limit();
    }
    best_.lower_bound = std::min(least, best_.price);
    return best_;
  }

 private:
  static constexpr double fine = 1e-5, coarse = 1e-3;

  /// What is of use is below the best price, and up to what is enough.
  double limit() const { return std::min(best_.price, std::nextafter(enough_, any_price)); }

  /// Where bounds must stay to be visited. They are other sums than a price: one that is the same but for
  /// rounding excludes what it bounds.
  double below_limit() const {
    constexpr double rounding = 4e-12;
    return limit() * (1 - rounding);
  }

  /// The least threshold within which there is a partition, between a bound that is known and the limit, to
  /// the tolerance from below. The last one found is priced.
  double raise(double least, double tolerance) {
    StageEnds found = layers_.within(std::nextafter(limit(), 0.0));
    if (found.empty()) return limit();
    double reached = limit();
    while (reached - least > tolerance * reached) {
      const double tried = (least + reached) / 2;
      StageEnds ends = layers_.within(tried);
      if (ends.empty()) {
        least = tried;
      } else {
        reached = tried;
        found = std::move(ends);
      }
    }
    improves(found);
    return least;
  }

  /// Prices a partition that fits; true where it is better than the best.
  bool improves(const StageEnds& ends) {
    std::vector<StagePart> parts;
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < ends.size(); ++stage) {
      const auto part = thresholds_.part(stage, first, ends[stage]);
      if (!part) return false;
      parts.push_back(*part);
      first = ends[stage];
    }
    const double price = problem_.price(parts);
    --prices_left_;
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
      for (std::size_t cut = 0; cut + 1 < ends_.size(); ++cut)
        for (const int step : {-1, 1}) {
          StageEnds ends = ends_;
          ends[cut] += static_cast<std::size_t>(step);
          const std::size_t before = cut == 0 ? 0 : ends[cut - 1];
          if (ends[cut] <= before || ends[cut] >= ends[cut + 1] || !stays_below(ends)) continue;
          if (prices_left_ <= 0) return;
          moved = improves(ends) || moved;
        }
    }
  }

  /// Whether the partition's bounds are below the limit.
  bool stays_below(const StageEnds& ends) const {
    const double below = below_limit();
    PartitionLayers::Seen seen;
    std::size_t first = 0;
    for (std::size_t stage = 0; stage < ends.size(); ++stage) {
      const auto part = thresholds_.part(stage, first, ends[stage]);
      if (!part) return false;
      bool too_long = false;
      const auto next = layers_.followed(seen, stage, *part, below, too_long);
      if (!next) return false;
      seen = *next;
      first = ends[stage];
    }
    return true;
  }

  /// Every partition whose bounds are below the limit; false where there were no prices left.
  bool visit_all() {
    starts_ = thresholds_.earliest_starts(below_limit());
    StageEnds ends;
    return visit_from(ends, {}).complete;
  }

  struct Visit {
    bool complete = true;
    bool came_to_end = false;
  };

  /// From the end of the last of `ends` on.
  Visit visit_from(StageEnds& ends, const PartitionLayers::Seen& seen) {
    const std::size_t stage = ends.size(), stages = thresholds_.stages();
    if (stage == stages) {
      if (prices_left_ <= 0) return {false, true};
      improves(ends);
      return {true, true};
    }
    const std::size_t first = ends.empty() ? 0 : ends.back();
    const bool at_end = stage + 1 == stages;
    const std::size_t places = thresholds_.last_place() + 1;
    const std::size_t least = at_end ? places - 1 : std::max(first + 1, starts_[stage + 1]);
    const std::size_t most = at_end ? places - 1 : thresholds_.farthest_end(stage);
    Visit visit;
    for (std::size_t end = least; end <= most; ++end) {
      const auto part = thresholds_.part(stage, first, end);
      if (!part) break;
      bool too_long = false;
      const auto next = layers_.followed(seen, stage, *part, below_limit(), too_long);
      if (too_long) break;
      if (!next) continue;
      const std::size_t place =
          ((stage * places + first) * places + end) * (stages + 1) + static_cast<std::size_t>(next->run);
      if (const auto dead = dead_.find(place); dead != dead_.end() && next->late >= dead->second) continue;
      ends.push_back(end);
      const Visit further = visit_from(ends, *next);
      ends.pop_back();
      visit.came_to_end = visit.came_to_end || further.came_to_end;
      if (!further.complete) return {false, true};
      if (!further.came_to_end) dead_[place] = next->late;
    }
    return visit;
  }

  const PartitionProblem& problem_;
  const PartitionThresholds thresholds_;
  PartitionLayers layers_;
  std::int64_t prices_left_;
  const double enough_;
  StageEnds ends_;
  std::vector<std::size_t> starts_;
  Partition best_;
  /// (stage, first, end, run): from where, with so much late or more, no visit came to an end.
  std::unordered_map<std::size_t, double> dead_;
};

}  // namespace

bool any_partition_fits(const PartitionProblem& problem) { return PartitionThresholds(problem).any_fits(); }

bool any_partition_roughly_within(const PartitionProblem& problem, double seconds) {
  return !PartitionThresholds(problem).within(seconds).empty();
}

bool any_partition_within(const PartitionProblem& problem, double seconds) {
  const PartitionThresholds thresholds(problem);
  return !thresholds.within(seconds).empty() &&
         (seconds == any_price || !PartitionLayers(problem, thresholds).within(seconds).empty());
}

std::optional<Partition> best_partition(const PartitionProblem& problem, std::int64_t most_prices,
                                        double enough, Effort effort) {
  return PartitionSearch(problem, most_prices, enough).run(effort);
}

}  // namespace planner
