// Step time of a pipeline from its ranks' times, in closed form.
//
// With t the slowest rank's time for one micro-batch (all its virtual stages, forward and backward), Σ the
// sum over ranks, p ranks, v virtual stages a rank, m micro-batches and c the exposed transfer of one
// micro-batch:
//
//   step = m (t + c) + bubble share · (Σ − t + (p − 1) c) / v
//
// The second part fills and drains the pipeline once; 1F1B and GPipe pay all of it, interleaving 1/v. ZB-H1
// leaves a third, ZB-H2 and the V schedule almost nothing (Qi et al., Zero Bubble Pipeline Parallelism, table
// 1, with forward, input-gradient and weight-gradient times equal).
#pragma once

#include <cstdint>

#include "specs/schedule/schedule.h"

namespace cost_models {

struct PipelineShape {
  double ranks = 1;
  double virtual_stages = 1;
  double micro_batches = 1;
  std::int64_t micro_batch_group = 0;
  specs::ScheduleKind schedule = specs::ScheduleKind::one_forward_one_backward;
};

struct PipelineSeconds {
  double work = 0;      ///< of the slowest rank
  double transfer = 0;  ///< exposed
  double bubble = 0;
  double total() const { return work + transfer + bubble; }
};

/// Share of the fill-and-drain time that a schedule pays.
double bubble_share(specs::ScheduleKind schedule);

PipelineSeconds pipeline_seconds(const PipelineShape& shape, double slowest_rank, double sum_of_ranks,
                                 double transfer_seconds);

/// Micro-batches whose activations rank `rank` (0-based) keeps at its peak, in units of all its virtual
/// stages.
double micro_batches_in_flight(const PipelineShape& shape, double rank);

}  // namespace cost_models
