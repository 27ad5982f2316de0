// Measures this machine's CPUs for dsplan: the rates that specs/language/probe.h asks for, in a few seconds.
#pragma once

#include <optional>
#include <string>

#include "runtime/worker_pool/worker_pool.h"
#include "specs/language/probe.h"

namespace runtime {

/// The ranks that measure collectives are this program started again: its main must call `run_as_worker` with
/// these before anything else.
WorkerJobs probe_jobs();

/// Best of several repetitions each, one thread a rank.
specs::LocalhostProbe measure_localhost();

/// Measures, writes `path` (default: where dsplan looks) and prints what was measured. Returns the exit code.
int run_probe(const std::optional<std::string>& path);

}  // namespace runtime
