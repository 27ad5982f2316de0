// Time to write a checkpoint.
#pragma once

#include "specs/language/cluster.h"

namespace cost_models {

/// Bytes a second that all nodes together write: local drives add up; a shared file system gives each node
/// its own rate until the whole system's is reached (NFS: one server for all; Lustre: many targets). 0 where
/// neither rate is known.
double checkpoint_bytes_per_second(const specs::StorageSpec& storage, double nodes);

/// Seconds of writing `bytes` from `nodes` nodes, which is the stall of training that waits for it; 0 where
/// the storage's rate is not known.
double checkpoint_write_seconds(double bytes, const specs::StorageSpec& storage, double nodes);

}  // namespace cost_models
