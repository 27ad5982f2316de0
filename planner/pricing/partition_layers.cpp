#include "planner/pricing/partition_layers.h"

#include <algorithm>

namespace planner {

StageEnds PartitionLayers::within(double seconds) {
  const std::size_t stages = thresholds_.stages();
  if (thresholds_.last_place() < stages) return {};
  const std::vector<std::size_t> starts = thresholds_.earliest_starts(seconds);
  states_.assign(stages, {});
  const bool single = stages == 1;
  enter_first(seconds, single ? thresholds_.last_place() : std::max<std::size_t>(1, starts[1]));
  for (std::size_t stage = 1; stage < stages; ++stage) {
    if (states_[stage - 1].empty()) return {};
    const bool last = stage + 1 == stages;
    enter(stage, seconds, last ? thresholds_.last_place() : starts[stage + 1],
          last ? thresholds_.last_place() : thresholds_.farthest_end(stage));
  }
  return states_.back().empty() ? StageEnds{} : ends_of(0);
}

std::optional<PartitionLayers::Seen> PartitionLayers::followed(const Seen& seen, std::size_t stage,
                                                               const StagePart& part, double seconds,
                                                               bool& too_long) const {
  const auto number = static_cast<std::int64_t>(stage);
  const double path = problem_.path(number, part);
  const double after = problem_.after(number, part);
  const double back = goes_back_ ? problem_.back(number, part.first) : 0;
  Seen next{part, goes_back_ ? std::max(seen.late, after - back) : after, 0};
  // What follows the stage's last backward pass.
  const double rest = back + next.late;
  too_long = path + rest > seconds;
  if (too_long) return std::nullopt;
  if (stage > 0 && problem_.pair_path(number - 1, seen.last, part) + rest > seconds) return std::nullopt;
  if (problem_.takes_long(number, part)) {
    next.run = seen.run + 1;
    if (next.run > 1 && problem_.run_path(number, part, next.run) + rest > seconds) return std::nullopt;
  }
  return next;
}

void PartitionLayers::enter_first(double seconds, std::size_t least_end) {
  for (std::size_t end = least_end; end <= thresholds_.farthest_end(0); ++end) {
    const auto part = thresholds_.part(0, 0, end);
    if (!part) break;
    bool too_long = false;
    const auto seen = followed({}, 0, *part, seconds, too_long);
    if (!seen) break;
    states_.front().push_back({*seen, static_cast<std::uint32_t>(end), 0});
  }
}

// Those of the stage before that end where this one begins stand together, the least late first.
void PartitionLayers::enter(std::size_t stage, double seconds, std::size_t least_end, std::size_t most_end) {
  const std::vector<State>& before = states_[stage - 1];
  std::vector<State>& found = states_[stage];
  for (std::size_t group = 0, next = 0; group < before.size(); group = next) {
    const std::size_t first = before[group].end;
    while (next < before.size() && before[next].end == first) ++next;
    bool any = true;
    for (std::size_t end = std::max(first + 1, least_end); any && end <= most_end; ++end) {
      const auto part = thresholds_.part(stage, first, end);
      if (!part) break;
      std::int64_t least_run = std::numeric_limits<std::int64_t>::max();
      for (std::size_t state = group; state < next && least_run > 0; ++state) {
        bool too_long = false;
        const auto seen = followed(before[state].seen, stage, *part, seconds, too_long);
        if (too_long) {
          any = state > group;
          break;
        }
        if (!seen || seen->run >= least_run) continue;
        least_run = seen->run;
        found.push_back({*seen, static_cast<std::uint32_t>(end), static_cast<std::uint32_t>(state)});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const State& a, const State& b) {
    return a.end != b.end ? a.end < b.end : a.seen.late < b.seen.late;
  });
}

StageEnds PartitionLayers::ends_of(std::size_t state) const {
  StageEnds ends(states_.size());
  for (std::size_t stage = states_.size(); stage-- > 0;) {
    ends[stage] = states_[stage][state].end;
    state = states_[stage][state].before;
  }
  return ends;
}

}  // namespace planner
