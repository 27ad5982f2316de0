// Measured rates, as they stand in devices, nodes and the probe file.
#pragma once

#include <vector>

#include "specs/language/key_visitor.h"
#include "specs/language/measured_rates.h"

namespace specs {

void visit_gemm_rates(KeyVisitor& visitor, std::vector<GemmRate>& rates);
void visit_collective_rates(KeyVisitor& visitor, std::vector<CollectiveRate>& rates);

}  // namespace specs
