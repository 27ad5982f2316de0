// Lower bounds: what no member of a region can be better than. Made of the cost functions themselves, so that
// they stay bounds when constants or formulas change; a property test holds them against every member of
// random small spaces.
//
// Time. Let W be the seconds of one micro-batch through all units of the model on one rank, nothing
// recomputed, nothing offloaded, parameters where they are used. Whatever the cuts, the ranks' times add up
// to at least W: recomputation, offload and ZeRO-2/3 gathers only add to a unit's time (stage_seconds). With
// p ranks, m micro-batches, c the seconds of a transfer:
//
//   any schedule   The mean over ranks of m T_i + e_i, where T_i is a rank's time for a micro-batch and e_i
//   its
//                  gradient reduction, is at most the largest: P >= m W / p + e. e_i is linear or convex in
//                  the rank's parameters, hence e is that of a rank with the mean.
//   GPipe          All forwards end after Σ f + (m - 1) max f + (p - 1) c, all backwards as much later with
//   b:
//                  P >= W + (m - 1) W / p + 2 (p - 1) c.
//   1F1B           Rank i has done w_i = min(p - i, m) forwards when its first backward may start, which is
//   not
//                  before the first micro-batch has gone to the last rank and come back to it. Then follow
//                  its m backwards, the m - w_i forwards that are left, and the way back from it to rank 0.
//                  With the transfers on the way, and β the least share of the backward pass in a unit's
//                  time,
//                      P >= W + 2 (p - 1) c + (m - 1) b_i + (m - w_i) f_i
//                        >= W + 2 (p - 1) c + a_i T_i,   a_i = m - w_i + (w_i - 1) β
//                  for each i; the T_i that make the largest of a_i T_i smallest are in proportion to 1 /
//                  a_i:
//                      P >= W + 2 (p - 1) c + W / Σ 1 / a_i.
//                  The embedding has a small β of its own: the last W and the T_i leave it out.
//   interleaved    Stages that share a rank hold equally many layers. With s the seconds of so many of the
//                  quickest layers, the last of the p ranks starts after p - 1 stages of the first round, and
//                  its last gradient passes p - 1 stages on its way back:
//                      P >= (p - 1) (s + 2 c) + m (v s + output layer).
//
// To this come the update of the mean rank under its quickest treatment and the fixed part of a step.
//
// Several kinds of nodes. The stages of a pipeline may lie on devices of each (group_bounds.h), or each
// replica on devices of one, with a share of the micro-batches of its own: then the bounds above hold for the
// replicas of each kind with their share, and the best shares are where they cross. The smaller of the two is
// the bound.
//
// Memory. A micro-batch of no tokens keeps no activations. Parameters, gradients and optimizer states of the
// average rank, sharded and offloaded as far as any treatment goes, are what the fullest rank holds at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost_models/estimate.h"
#include "cost_models/stage_cost.h"
#include "cost_models/step_time.h"
#include "planner/pricing/group_bounds.h"
#include "planner/space/group_layouts.h"
#include "planner/space/space.h"

namespace planner {

/// Bounds of one mesh.
class MeshBounds {
 public:
  MeshBounds(const specs::Experiment& experiment, const Space& space, const cost_models::Estimator& estimator,
             const MeshSpace& mesh);

  /// Device memory of a rank that every member needs at least.
  std::int64_t device_bytes() const;

  /// Of one micro-batch through the whole model on one rank, by group of devices.
  struct GroupSeconds {
    double seconds = 0;  ///< W
    double without_embedding = 0;
    double backward_share = 1;  ///< β
    double quickest_layer = 0;
    double output = 0;
    GroupWork of_kinds;  ///< where there are several groups
  };
  using Work = std::vector<GroupSeconds>;
  Work work(const BatchChoice& batch, bool sequence_parallel, const specs::ModuleTreatments& modules) const;
  /// No more than with any of the mesh's module treatments: each unit at its quickest.
  Work quickest_work(const BatchChoice& batch, bool sequence_parallel) const;
  /// Step time of every member with this micro-batch, schedule and work.
  double step_seconds(const BatchChoice& batch, const ScheduleChoice& schedule, const Work& work) const;

 private:
  cost_models::ShardKey shards_of(const specs::ZeroTreatment& zero) const;
  cost_models::StepEndSeconds quickest_end(std::size_t group) const;
  specs::RegularPlacement point_of(const BatchChoice& batch, bool sequence_parallel) const;
  GroupSeconds work_of_group(const cost_models::LayerCosts& costs, std::size_t group) const;
  /// All replicas on devices of one group.
  double step_of_group(const specs::RegularPlacement& point, const GroupSeconds& work,
                       std::size_t group) const;
  /// Stages on devices of all groups.
  double step_of_stages(const specs::RegularPlacement& point, const Work& work) const;
  double step_of_shares(const specs::RegularPlacement& point, const Work& work,
                        const ReplicaShares& shares) const;

  const specs::Experiment* experiment_;
  const Space* space_;
  const cost_models::Estimator* estimator_;
  const MeshSpace* mesh_;
  /// Each module's treatments once, side by side.
  std::vector<specs::ModuleTreatments> of_each_module_;
  cost_models::UnitCounts whole_;                  ///< all units of the model
  cost_models::RankParameters parameters_;         ///< of the average rank
  std::vector<cost_models::StepEndSeconds> ends_;  ///< by group, each part at its quickest
  std::shared_ptr<const GroupLayouts> layouts_;    ///< where there are several groups
};

}  // namespace planner
