// The moments at which a pipeline rank can be fullest, by shape of schedule: what memory rules that follow a
// schedule read in its place. They depend on no size of the model, so that those of a shape serve every
// placement.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/memo.h"
#include "cost_models/pipeline.h"
#include "specs/schedule/holdings.h"

namespace cost_models {

struct ScheduleMoments {
  std::int32_t micro_batches = 0;  ///< that were followed; more are alike, but to GPipe
  /// By pipeline rank, in order. Left out is each that holds no more of anything than another with the same
  /// kind of action on the same chunk, whatever the sizes; the last micro-batch, which ends a step, before
  /// others. Empty where there is no such schedule.
  std::vector<std::vector<specs::Holdings>> of_rank;
};

/// Remembers them. Safe for several threads.
class ScheduleMomentsMemo {
 public:
  const ScheduleMoments& get(const PipelineShape& shape) const;

  struct Key {
    specs::ScheduleKind kind = specs::ScheduleKind::one_forward_one_backward;
    std::int32_t ranks = 1;
    std::int32_t chunks = 1;
    std::int32_t micro_batches = 1;
    std::int32_t group = 0;
    bool operator==(const Key&) const = default;
  };

 private:
  mutable Memo<Key, ScheduleMoments> moments_;
};

}  // namespace cost_models
