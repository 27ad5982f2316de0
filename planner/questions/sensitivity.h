// What would help most: the same placement priced on a machine that is a little better in one respect.
#pragma once

#include <string>
#include <vector>

#include "specs/language/experiment.h"
#include "specs/plan/placement.h"

namespace planner {

struct SensitivityEntry {
  std::string change;       ///< "10 % more network bandwidth"
  std::string resource;     ///< of the machine, which there is more of: "network bandwidth"; else empty
  double step_seconds = 0;  ///< of the same placement after the change; for memory, of the new optimum
  double saving = 0;        ///< share of the step that the change saves
};

/// The largest saving first: arithmetic rate, device memory bandwidth, link inside the node, network, each
/// with 10 % more; device memory with 10 % more and the placement chosen anew; a tenth more micro-batches a
/// step, the step taken for the same tokens as before; where the schedule takes no such number, scaled from
/// the next that it takes.
std::vector<SensitivityEntry> sensitivity(const specs::Experiment& experiment,
                                          const specs::Placement& placement);

}  // namespace planner
