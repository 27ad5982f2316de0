// What the ranks read, compared before the first step: a rank with other files, or with the part of another
// rank, would train a wrong model and nobody would see it.
#pragma once

#include <cstdint>

#include "runtime/comm/communicator.h"
#include "runtime/data/batch_loader.h"

namespace runtime {

/// Collective over `world`: the ranks with the same coordinate on the data axis read the same tokens of the
/// global batch after `consumed` samples, those with different ones no place in common, and together they
/// read every place. Errors: DataError that names two ranks.
void check_batches(const BatchLoader& loader, std::int64_t consumed, std::int64_t data_rank,
                   const Communicator& world);

}  // namespace runtime
