#include "specs/language/rate_keys.h"
#include "specs/language/section_keys.h"

namespace specs {

void visit_keys(KeyVisitor& visitor, LocalhostProbe& probe) {
  visitor.integer({"format_version", "of this file"}, probe.format_version, {1, 1'000'000});
  visitor.text({"processor", "model name of the CPU"}, probe.processor);
  visitor.text({"library", "that was measured"}, probe.library);
  visitor.text({"measured_at", "UTC"}, probe.measured_at);
  visitor.quantity({"memory_bandwidth", "of one core, bytes read and written"}, probe.memory_bytes_per_second,
                   Unit::bytes_per_second, positive);
  visitor.quantity({"operator_time", "fixed cost of one tensor operator"}, probe.operator_seconds,
                   Unit::seconds, {0, 1});
  visit_gemm_rates(visitor, probe.gemm_rates);
  visit_collective_rates(visitor, probe.collective_rates);
}

}  // namespace specs
