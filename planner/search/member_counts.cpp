#include "planner/search/member_counts.h"

namespace planner {

const Count& MemberCounts::of_point(const specs::RegularPlacement& point) {
  PointKey key{point.tensor, point.pipeline, point.schedule, point.virtual_stages, point.recomputation, 0, 0};
  if (pricer_.members_follow_shares()) {
    std::get<5>(key) = point.data;
    std::get<6>(key) = point.micro_batch;
  }
  const auto [found, added] = points_.try_emplace(key);
  if (added) found->second = pricer_.members(point);
  return found->second;
}

// Of one sequence parallelism and one ZeRO, offload and local-steps treatment: the sum over recomputations.
Count MemberCounts::of_kind(const MeshSpace& mesh, const BatchChoice& batch, const ScheduleChoice& schedule) {
  specs::RegularPlacement point = mesh.corner();
  point.micro_batch = batch.micro_batch;
  point.accumulation = batch.accumulation;
  point.schedule = schedule.kind;
  point.virtual_stages = schedule.virtual_stages;
  Count sum = 0;
  for (const specs::Recomputation recomputation : space_.recomputations()) {
    point.recomputation = recomputation;
    sum += of_point(point);
  }
  return sum;
}

const Count& MemberCounts::of_schedules(const MeshSpace& mesh, const BatchChoice& batch) {
  const bool shares = pricer_.members_follow_shares();
  const auto [found, added] =
      schedules_.try_emplace({mesh.mesh.tensor, mesh.mesh.pipeline, batch.schedules,
                              shares ? mesh.mesh.data : 0, shares ? batch.micro_batch : 0});
  if (added)
    for (const ScheduleChoice& schedule : space_.schedules(batch))
      found->second += of_kind(mesh, batch, schedule);
  return found->second;
}

Count MemberCounts::of_schedule(const MeshSpace& mesh, const BatchChoice& batch,
                                const ScheduleChoice& schedule) {
  return of_kind(mesh, batch, schedule) * space_.kinds(mesh) * space_.treatments_of_one_kind(mesh);
}

Count MemberCounts::of_batch(const MeshSpace& mesh, const BatchChoice& batch) {
  return of_schedules(mesh, batch) * space_.kinds(mesh) * space_.treatments_of_one_kind(mesh);
}

Count MemberCounts::of_mesh(const MeshSpace& mesh) {
  Count sum = 0;
  for (const BatchChoice& batch : space_.batches(mesh)) sum += of_schedules(mesh, batch);
  return sum * space_.kinds(mesh) * space_.treatments_of_one_kind(mesh);
}

}  // namespace planner
