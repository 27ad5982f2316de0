// What one rank must compute in a run, and the most it may hold whole, worked out from the placement alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/stage_model.h"
#include "tests/numerics/training_case.h"

namespace runtime::numerics {

/// What a rank counted over a whole run.
struct RankWork {
  std::vector<UnitPasses> passes;        ///< forward, replays counted, stage after stage
  std::int64_t buckets = 0;              ///< of gradients
  std::int64_t peak_whole_buckets = 0;   ///< with sharded gradients: held whole beside their shards
  std::int64_t peak_gathered_units = 0;  ///< with sharded parameters
};

/// One sentence for each count that is not as the placement says: each attention and each feed-forward
/// network runs forward once for each micro-batch, twice where its layer is recomputed in full; the core of
/// an attention twice where that or it alone is (flash attention keeps nothing that could be recomputed).
/// With ZeRO 2 and 3 two buckets are whole at most, one that is filled and one that travels meanwhile, and
/// besides a table that is filled from both ends of the model; with ZeRO 3 the unit in use and those
/// prefetched.
std::vector<std::string> work_defects(const TrainingCase& training, std::int64_t rank, const RankWork& work);

}  // namespace runtime::numerics
