#include "cost_models/pipeline.h"

#include "specs/schedule/in_flight.h"

namespace cost_models {

using specs::ScheduleKind;

double bubble_share(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::gpipe:
    case ScheduleKind::one_forward_one_backward:
    case ScheduleKind::interleaved:
      return 1;
    case ScheduleKind::zero_bubble_h1:
      return 1.0 / 3;
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_v:
      return 0.02;
    case ScheduleKind::dual_pipe_v:
      return 0.5;
  }
  return 1;
}

PipelineSeconds pipeline_seconds(const PipelineShape& shape, double slowest_rank, double sum_of_ranks,
                                 double transfer_seconds) {
  if (shape.ranks <= 1) return {shape.micro_batches * slowest_rank, 0, 0};
  PipelineSeconds seconds;
  const double share = bubble_share(shape.schedule) / shape.virtual_stages;
  seconds.work = shape.micro_batches * slowest_rank;
  seconds.transfer = shape.micro_batches * transfer_seconds;
  seconds.bubble = share * (sum_of_ranks - slowest_rank + (shape.ranks - 1) * transfer_seconds);
  return seconds;
}

double micro_batches_in_flight(const PipelineShape& shape, double rank) {
  if (shape.ranks <= 1 && shape.schedule != ScheduleKind::gpipe) return 1;
  const std::int64_t stages = specs::peak_in_flight(shape.schedule, static_cast<std::int64_t>(shape.ranks),
                                                    static_cast<std::int64_t>(shape.virtual_stages),
                                                    static_cast<std::int64_t>(shape.micro_batches),
                                                    static_cast<std::int64_t>(rank), shape.micro_batch_group);
  return static_cast<double>(stages) / shape.virtual_stages;
}

}  // namespace cost_models
