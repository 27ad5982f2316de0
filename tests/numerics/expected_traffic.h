// What one rank must communicate in a step, worked out from the model and the placement alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/comm/traffic.h"
#include "tests/numerics/training_case.h"

namespace runtime::numerics {

/// Of a rank's gradients; with ZeRO 3 it holds parameters of no other unit (runtime/model/unit_pass.h).
struct CountedBucket {
  std::int64_t unit = 0;
  std::int64_t elements = 0;  ///< padding included
};

/// What a rank counted over a whole run.
struct RankTraffic {
  std::map<TrafficKey, double> wire_bytes;
  std::vector<CountedBucket> buckets;
  std::int64_t parameter_elements = 0;   ///< padding rows of the vocabulary included, other padding not
  std::int64_t blocks = 0;               ///< of parameters that lie together
  std::int64_t bucket_elements() const;  ///< of all buckets
};

/// wire bytes = payload × 2(n−1)/n for an all-reduce, × (n−1)/n for a reduce-scatter or an all-gather, × 1
/// for a send; for n tokens a micro-batch, h hidden, b bytes of the training precision, per micro-batch:
///
///   tensor axis, without sequence parallelism: an all-reduce of n·h·b forward and one backward for each
///     attention and each FFN, the embedding (forward) and the output layer (backward);
///   with it: two all-gathers forward and backward less one and two reduce-scatters for each attention and
///     FFN: [AG RS] forward and [AG AG RS] backward; the embedding [RS], [AG], the output layer [AG], [AG
///     RS];
///   the loss: an all-reduce of one and one of two numbers a token;
///   a recomputed layer: its forward part once more;
///   a token-parallel output layer: one number forward, and an all-gather of n·h·b backward, or nothing with
///     sequence parallelism; its tied embedding: nothing;
///   pipeline: n·h·b (a 1/t of it with sequence parallelism) each way across each boundary between ranks;
///
/// and once a step, with g bytes of the gradient precision: all-reduce of the gradients that are partial over
/// the tensor axis and of a tied table over its two ends; over the replicas an all-reduce of all buckets, or
/// at ZeRO 1 their reduce-scatter in g and their all-gather in b bytes, and an all-reduce of the shard over
/// the nodes where it stays inside one; the count of target tokens; loss and norm together. At ZeRO 2 the
/// sums over the tensor axis and the reduce-scatter come once a micro-batch. At ZeRO 3 so does the gathering
/// of parameters, twice for each unit; once where it is kept from the one pass to the other, and for the
/// embedding, whose backward pass reads none; thrice for a layer that is replayed before others of its block.
std::map<TrafficKey, double> expected_traffic(const TrainingCase& training, std::int64_t rank,
                                              const RankTraffic& counted);

/// One sentence for each count that is not as expected; and for padding beyond what alignment asks for.
std::vector<std::string> traffic_defects(const TrainingCase& training, std::int64_t rank,
                                         const RankTraffic& counted);

}  // namespace runtime::numerics
