// What every rank measured of a step, known to all.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"

namespace runtime {

struct StepMeasurement {
  std::int64_t peak_tensor_bytes = 0;
  std::int64_t peak_host_bytes = 0;
  double data_wait_seconds = 0;
};

/// Collective: the measurements of all ranks, by rank.
std::vector<StepMeasurement> gather_measurements(const Communicator& ranks, const StepMeasurement& mine);

}  // namespace runtime
