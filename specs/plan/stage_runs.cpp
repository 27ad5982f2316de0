#include <cstddef>

#include "specs/plan/plan_keys.h"

namespace specs {

PipelineStage StageRun::at(std::int64_t index) const {
  PipelineStage moved = stage;
  moved.pipeline_rank += index * pipeline_rank_step;
  moved.devices.first += index * first_device_step;
  moved.units.first += index * unit_step;
  moved.units.end += index * unit_step;
  return moved;
}

std::vector<StageRun> fold(const std::vector<PipelineStage>& stages) {
  std::vector<StageRun> runs;
  for (std::size_t begin = 0; begin < stages.size();) {
    StageRun run{.stage = stages[begin]};
    std::size_t end = begin + 1;
    if (end < stages.size()) {
      run.pipeline_rank_step = stages[end].pipeline_rank - run.stage.pipeline_rank;
      run.first_device_step = stages[end].devices.first - run.stage.devices.first;
      run.unit_step = stages[end].units.first - run.stage.units.first;
    }
    while (end < stages.size() && stages[end] == run.at(static_cast<std::int64_t>(end - begin))) ++end;
    run.count = static_cast<std::int64_t>(end - begin);
    if (run.count == 1) run = {.stage = stages[begin]};
    runs.push_back(std::move(run));
    begin = end;
  }
  return runs;
}

std::vector<PipelineStage> unfold(const std::vector<StageRun>& runs) {
  std::vector<PipelineStage> stages;
  for (const StageRun& run : runs)
    for (std::int64_t index = 0; index < run.count; ++index) stages.push_back(run.at(index));
  return stages;
}

}  // namespace specs
