#include "runtime/train/step_statistics.h"

#include <ATen/ops/empty.h>

namespace runtime {

std::vector<StepMeasurement> gather_measurements(const Communicator& ranks, const StepMeasurement& mine) {
  constexpr std::int64_t fields = 3;
  const at::Tensor all = at::empty({ranks.size() * fields}, at::kDouble);  // whole bytes are exact up to 2^53
  const at::Tensor own = all.narrow(0, ranks.rank() * fields, fields);
  double* values = own.mutable_data_ptr<double>();
  values[0] = static_cast<double>(mine.peak_tensor_bytes);
  values[1] = static_cast<double>(mine.peak_host_bytes);
  values[2] = mine.data_wait_seconds;
  ranks.all_gather_into(all, own);

  std::vector<StepMeasurement> measurements;
  const double* at = all.const_data_ptr<double>();
  for (std::int64_t rank = 0; rank < ranks.size(); ++rank, at += fields)
    measurements.push_back({static_cast<std::int64_t>(at[0]), static_cast<std::int64_t>(at[1]), at[2]});
  return measurements;
}

}  // namespace runtime
