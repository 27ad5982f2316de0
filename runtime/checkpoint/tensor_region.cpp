#include "runtime/checkpoint/tensor_region.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace runtime {

namespace {

/// The box that two boxes share; false where they share none.
bool intersect(const ShardBox& a, const ShardBox& b, ShardBox& shared) {
  shared = a;
  for (std::size_t dim = 0; dim < a.offset.size(); ++dim) {
    const std::int64_t begin = std::max(a.offset[dim], b.offset[dim]);
    const std::int64_t end = std::min(a.offset[dim] + a.extent[dim], b.offset[dim] + b.extent[dim]);
    if (begin >= end) return false;
    shared.offset[dim] = begin;
    shared.extent[dim] = end - begin;
  }
  return true;
}

/// The place of an element of the tensor inside a box, along its rows.
std::int64_t place_in(const ShardBox& box, const std::vector<std::int64_t>& element) {
  std::int64_t place = 0;
  for (std::size_t dim = 0; dim < element.size(); ++dim)
    place = place * box.extent[dim] + element[dim] - box.offset[dim];
  return place;
}

/// The next row of `box` after the one `element` begins; false after the last.
bool next_row(const ShardBox& box, std::vector<std::int64_t>& element) {
  for (std::size_t dim = element.size() - 1; dim-- > 0;) {
    if (++element[dim] < box.offset[dim] + box.extent[dim]) return true;
    element[dim] = box.offset[dim];
  }
  return false;
}

}  // namespace

std::int64_t box_size(const ShardBox& box) {
  return std::accumulate(box.extent.begin(), box.extent.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<SharedRun> shared_runs(const TensorRegion& source, const TensorRegion& target) {
  std::vector<SharedRun> runs;
  ShardBox shared;
  if (!intersect(source.box, target.box, shared)) return runs;
  std::vector<std::int64_t> element = shared.offset;
  do {
    const std::int64_t in_source = place_in(source.box, element) - source.begin;
    const std::int64_t in_target = place_in(target.box, element) - target.begin;
    const std::int64_t first = std::max({std::int64_t{0}, -in_source, -in_target});
    const std::int64_t last =
        std::min({shared.extent.back(), source.size() - in_source, target.size() - in_target});
    if (first >= last) continue;
    const SharedRun run{in_source + first, in_target + first, last - first};
    if (!runs.empty() && runs.back().in_source + runs.back().count == run.in_source &&
        runs.back().in_target + runs.back().count == run.in_target)
      runs.back().count += run.count;
    else
      runs.push_back(run);
  } while (next_row(shared, element));
  return runs;
}

Coverage cover(const TensorRegion& target, const std::vector<TensorRegion>& sources) {
  std::vector<SourceRun> all;
  for (std::size_t source = 0; source < sources.size(); ++source)
    for (const SharedRun& run : shared_runs(sources[source], target)) all.push_back({source, run});
  std::stable_sort(all.begin(), all.end(),
                   [](const SourceRun& a, const SourceRun& b) { return a.run.in_target < b.run.in_target; });
  Coverage coverage;
  std::int64_t covered = 0;
  for (SourceRun& candidate : all) {
    SharedRun& run = candidate.run;
    const std::int64_t twice = std::max(std::int64_t{0}, covered - run.in_target);
    if (twice >= run.count) continue;
    run = {run.in_source + twice, run.in_target + twice, run.count - twice};
    coverage.missing += run.in_target - covered;
    covered = run.in_target + run.count;
    coverage.runs.push_back(candidate);
  }
  coverage.missing += target.size() - covered;
  return coverage;
}

}  // namespace runtime
