// Lower bounds of a pipeline whose ranks lie on devices of several kinds (group_layouts.h).
//
// Let t_k(g) be the seconds of one micro-batch through all units of kind k on a device of group g, W(g) their
// sum, T_i what rank i does for a micro-batch, m the micro-batches and c the seconds of a transfer. Whatever
// the cut, and for any weights x_i >= 0 of the ranks,
//
//   Σ x_i T_i >= Σ_k min_g x_g t_k(g),   x_g the least weight of the ranks in g.
//
//   any schedule   P >= m T_i for each i, hence for weights α_i that add up to 1, in proportion to 1 / W(g):
//                      P >= m Σ_k min_g t_k(g) / W(g)  /  Σ_i 1 / W(g_i).
//                  Of what a rank does after its last micro-batch, which is linear or convex in its
//                  parameters, no less than the smallest p α_i counts.
//   GPipe, 1F1B    P >= 2 (p - 1) c + Σ_j T_j + a_i T_i for each i (lower_bounds.h; GPipe: a_i = m - 1), the
//                  embedding left out of the last term. With weights β_i of the ranks that add up to 1 the
//                  ranks weigh 1 + β_i a_i. Those β_i are taken for which this is K / W(g_i):
//                      K = (1 + Σ 1 / a_i) / Σ 1 / (a_i W(g_i));
//                  groups for which it would be below 1 keep β = 0, and the others share the whole.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "specs/schedule/schedule.h"

namespace planner {

/// One micro-batch through the whole model on one device of a group, nothing recomputed.
struct GroupWork {
  std::vector<double> of_kind;  ///< t_k, the embedding not among them; the same kinds for all groups
  double embedding = 0;
  double seconds() const;
};

/// a_i of 1F1B: what rank i of `ranks` does beside the first micro-batch, `backward_share` the least share of
/// the backward pass in a unit's time.
std::vector<double> busy_micro_batches(specs::ScheduleKind kind, std::int64_t ranks,
                                       std::int64_t micro_batches, double backward_share);

/// What lies on which group.
struct MixedPipeline {
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
  double micro_batches = 1;
  double transfer_seconds = 0;
  double backward_share = 1;
  std::span<const std::size_t> group_of_rank;
};

struct MixedPipelineBound {
  double seconds = 0;         ///< of the pipeline, whatever follows
  double shared_seconds = 0;  ///< the bound of any schedule
  double least_weight = 1;    ///< the smallest p α_i
};

MixedPipelineBound mixed_pipeline_bound(const MixedPipeline& pipeline, std::span<const GroupWork> groups);

}  // namespace planner
