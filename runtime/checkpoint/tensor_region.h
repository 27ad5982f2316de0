// Parts of a tensor, and which elements two of them share.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/parameter.h"

namespace runtime {

/// Elements [begin, end) of a box inside a tensor, counted along its rows: what one rank holds of a parameter
/// or of a moment, whole (0 … all of the box) or a shard of it.
struct TensorRegion {
  ShardBox box;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const TensorRegion&) const = default;
};

std::int64_t box_size(const ShardBox& box);

/// `count` elements that lie one after another in both regions, from these places on, counted from each
/// region's own begin.
struct SharedRun {
  std::int64_t in_source = 0;
  std::int64_t in_target = 0;
  std::int64_t count = 0;
  bool operator==(const SharedRun&) const = default;
};

/// All elements that two regions of one tensor share, in order, in the longest runs.
std::vector<SharedRun> shared_runs(const TensorRegion& source, const TensorRegion& target);

/// Which source gives what to the target.
struct SourceRun {
  std::size_t source = 0;
  SharedRun run;
};

struct Coverage {
  std::vector<SourceRun> runs;  ///< each element of the target once
  std::int64_t missing = 0;     ///< elements of the target that no source holds
};

Coverage cover(const TensorRegion& target, const std::vector<TensorRegion>& sources);

}  // namespace runtime
