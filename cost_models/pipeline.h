// Seconds of a pipeline's pass over all micro-batches of a step: the critical path of its schedule over
// pipeline ranks, transfers and what each rank does after its last action included.
//
// Which form it takes follows from the placement alone:
//
//   one rank      m times its work
//   GPipe         closed form, exact for any stages (two flow shops of m identical jobs): with f, b the
//                 ranks' forward and backward times, c the transfers' and e what follows on rank i, the
//                 largest over i of  Σ f + (m − 1) max(f, c) + Σ c  +  Σ_{j≥i} b + (m − 1) max_{j≥i}(b, c) +
//                 Σ_{j≥i} c  +  e_i
//   all others    the schedule simulated (schedule_path.h); beyond some rounds of micro-batches, what further
//                 rounds add is taken from the last two that were simulated
//
// Both agree with the discrete-event simulation of the same plan within 2 % (tests/planner/simulate).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cost_models/schedule_path.h"
#include "specs/schedule/schedule.h"

namespace cost_models {

struct PipelineShape {
  double ranks = 1;
  double virtual_stages = 1;
  double micro_batches = 1;
  std::int64_t micro_batch_group = 0;
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
};

/// Exposed seconds of moving one micro-batch's activations from each pipeline rank to the next, the last
/// one's to the first; as long as its gradients take back.
class Transfers {
 public:
  Transfers() = default;
  /// All alike.
  explicit Transfers(double each) : each_(each) {}
  explicit Transfers(std::vector<double> after_rank) : after_rank_(std::move(after_rank)) {}
  double after(std::int64_t rank) const {
    return after_rank_.empty() ? each_ : after_rank_[static_cast<std::size_t>(rank)];
  }
  /// From the first rank to the last.
  double way(double ranks) const;
  /// Over so many boundaries, that after rank `first` being the first.
  double way(std::int64_t first, std::int64_t boundaries) const;
  double least() const;
  /// Over the boundary after each stage but the last.
  std::vector<double> between_stages(const PipelineShape& shape) const;

 private:
  double each_ = 0;
  std::vector<double> after_rank_;
};

double pipeline_seconds(const PipelineShape& shape, const PipelineLoad& load, const ScheduleOrders& orders);

/// The same, and what it would be without transfers between ranks.
struct PipelineSeconds {
  double with_transfers = 0;
  double without_transfers = 0;
};
PipelineSeconds pipeline_seconds_without_transfers_too(const PipelineShape& shape, const PipelineLoad& load,
                                                       const ScheduleOrders& orders);

/// Work of the slowest rank for one micro-batch.
double slowest_rank_seconds(const PipelineShape& shape, std::span<const StageSeconds> stages);

/// Never above pipeline_seconds: the largest over ranks of the first forward's way to the rank, all the
/// rank's work, and the larger of what it does after and the last gradient's way back from it (not where a
/// rank may end with weight gradients).
double pipeline_lower_bound(const PipelineShape& shape, const PipelineLoad& load);

/// Pipeline ranks that do the same, one after the other.
struct AlikeRanks {
  std::int64_t ranks = 1;
  StageSeconds first_stage;
  double micro_batch = 0;  ///< of all their stages
  double after = 0;        ///< of each, after its last action
};
/// The same for all schedules but GPipe, from runs of alike ranks.
double pipeline_lower_bound(const PipelineShape& shape, std::span<const AlikeRanks> ranks,
                            const Transfers& transfers);

/// Micro-batches whose activations rank `rank` (0-based) keeps at its peak, in units of all its virtual
/// stages.
double micro_batches_in_flight(const PipelineShape& shape, double rank);

}  // namespace cost_models
