// The lowering: places communication around the compute actions of a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/schedule/schedule.h"

namespace specs {

struct LoweringOptions {
  bool tied_embeddings =
      false;  ///< sum the table's gradient over the first and last stage, before any reduction
  std::int64_t zero_stage = 0;  ///< from 2 on gradients are reduced after each backward, at 3 parameters are
                                ///< gathered before and released after each forward and backward
  std::vector<std::int32_t> reshard_before;  ///< stages whose input has another layout than the output of the
                                             ///< stage before
};

/// Adds sends and receives between stages on different pipeline ranks, gradient reductions, and what the
/// options ask for. The sender places the receive of its peer, at the moment it sends: all actions then stand
/// in one global order in which a send and its receive are neighbours, so that the result cannot deadlock
/// even where a send blocks until it is received, and both ends of a directed pair agree on the order. The
/// moments are those of a run in which F, I and W take one unit and B two.
///
/// A reduction of a whole stage has micro-batch −1; gathers, releases and reductions per micro-batch carry
/// it. Requires compute actions that can run in the order given (`verify` finds no error).
Schedule lower(const Schedule& compute_only, const LoweringOptions& options = {});

}  // namespace specs
