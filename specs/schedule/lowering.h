// The lowering: places communication around the compute actions of a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "specs/schedule/schedule.h"

namespace specs {

struct LoweringOptions {
  /// Sum the table's gradient over the first and last stage, before any reduction.
  bool tied_embeddings = false;
  /// From 2 on gradients are reduced after each backward; at 3 parameters are gathered before and released
  /// after each forward and backward.
  std::int64_t zero_stage = 0;
  /// Stages whose input has another layout than the output of the stage before.
  std::vector<std::int32_t> reshard_before = {};
};

/// Adds sends and receives between stages on different pipeline ranks, gradient reductions, and what the
/// options ask for. The sender places the receive of its peer, at the moment it sends: all actions then stand
/// in one global order in which a send and its receive are neighbours, so that the result cannot deadlock
/// even where a send blocks until it is received, and both ends of a directed pair agree on the order. The
/// moments are those of a run in which F, I and W take one unit and B two.
///
/// A boundary between unlike layouts is crossed by a reshard in place of send and receive: the same action,
/// naming the stage it leads into, on the ranks of both stages, or once where one rank holds both.
///
/// A reduction of a whole stage has micro-batch −1; gathers, releases and reductions per micro-batch carry
/// it. Requires compute actions that can run in the order given (`verify` finds no error).
Schedule lower(const Schedule& compute_only, const LoweringOptions& options = {});

}  // namespace specs
