// The machine this program runs on, as a node of the cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/cluster.h"
#include "specs/language/probe.h"

namespace specs {

/// What this process may use: affinity and control-group limits count.
struct LocalMachine {
  std::string processor;  ///< model name of the CPU
  std::int64_t cores = 1;
  std::int64_t memory_bytes = 0;            ///< of the machine or its control group
  std::int64_t available_memory_bytes = 0;  ///< of that, what is free or can be freed
  bool operator==(const LocalMachine&) const = default;
};

/// `root` stands for `/`: tests lay out proc and sys files below a folder of their own. With another root the
/// affinity of the process is not asked.
LocalMachine read_local_machine(const std::string& root = "/");

/// One device a core: cores and memory of the machine, rates of the probe where it is of this processor, else
/// those that `node` already has (the catalog's cautious defaults). Returns notes on what was used.
Diagnostics apply_local_machine(const LocalMachine& machine, const std::optional<LocalhostProbe>& probe,
                                NodeSpec& node);

}  // namespace specs
