#include "specs/schedule/schedule.h"

namespace specs {

std::int32_t Schedule::rank_of_stage(std::int32_t stage) const {
  const std::int32_t chunk = stage / pipeline_ranks;
  const std::int32_t offset = stage % pipeline_ranks;
  const bool backwards = layout == StageLayout::v_shape && chunk % 2 == 1;
  return backwards ? pipeline_ranks - 1 - offset : offset;
}

}  // namespace specs
