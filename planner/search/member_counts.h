// How many candidates parts of the space hold, inner choices included: exact.
#pragma once

#include <cstddef>
#include <map>
#include <tuple>

#include "planner/pricing/pricing.h"
#include "planner/space/count.h"
#include "planner/space/space.h"

namespace planner {

/// Remembers the inner choices of an outer point by what they may depend on: the dense mesh's tensor and
/// pipeline degrees, the schedule and the recomputation; where replicas have shares of the batch, the data
/// degree and the micro-batch.
class MemberCounts {
 public:
  MemberCounts(const Space& space, const Pricer& pricer) : space_(space), pricer_(pricer) {}

  Count of_mesh(const MeshSpace& mesh);
  Count of_batch(const MeshSpace& mesh, const BatchChoice& batch);
  Count of_schedule(const MeshSpace& mesh, const BatchChoice& batch, const ScheduleChoice& schedule);
  /// Inner choices of one outer point.
  const Count& of_point(const specs::RegularPlacement& point);

 private:
  Count of_kind(const MeshSpace& mesh, const BatchChoice& batch, const ScheduleChoice& schedule);
  const Count& of_schedules(const MeshSpace& mesh, const BatchChoice& batch);

  using PointKey = std::tuple<std::int64_t, std::int64_t, specs::ScheduleKind, std::int64_t,
                              specs::Recomputation, std::int64_t, std::int64_t>;
  const Space& space_;
  const Pricer& pricer_;
  std::map<PointKey, Count> points_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::size_t, std::int64_t, std::int64_t>, Count> schedules_;
};

}  // namespace planner
