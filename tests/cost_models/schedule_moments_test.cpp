#include "cost_models/schedule_moments.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace cost_models {
namespace {

using specs::Holdings;
using specs::ScheduleKind;

/// Random bytes of everything that a moment counts.
struct Weights {
  Weights(std::int32_t chunks, std::mt19937& random) {
    std::uniform_real_distribution<double> size(0, 1);
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      kept.push_back(size(random));
      deferred.push_back(size(random));
      for (double& own : acting.emplace_back()) own = size(random);
    }
    stream = size(random);
  }

  double of(const Holdings& moment, std::int32_t ranks) const {
    double bytes = acting[static_cast<std::size_t>(moment.action.stage / ranks)]
                         [static_cast<std::size_t>(moment.action.kind)];
    for (std::size_t chunk = 0; chunk < kept.size(); ++chunk)
      bytes += moment.kept[chunk] * kept[chunk] + moment.deferred[chunk] * deferred[chunk];
    return bytes + stream * (moment.arrived_activations + moment.arrived_gradients + moment.own_gradients +
                             (moment.sending_activation >= 0) + (moment.sending_gradient >= 0));
  }

  std::vector<double> kept, deferred;
  std::vector<std::array<double, 4>> acting;  ///< by kind of compute action
  double stream = 0;
};

TEST(ScheduleMoments, HoldTheFullestOfAllWhateverTheSizes) {
  struct Case {
    ScheduleKind kind;
    std::int32_t ranks, chunks, micro_batches;
  };
  std::mt19937 random(7);
  const ScheduleMomentsMemo memo;
  for (const Case& c :
       {Case{ScheduleKind::one_forward_one_backward, 4, 1, 9}, Case{ScheduleKind::gpipe, 4, 1, 2},
        Case{ScheduleKind::interleaved, 4, 3, 16}, Case{ScheduleKind::interleaved, 2, 2, 5},
        Case{ScheduleKind::zero_bubble_h1, 4, 1, 10}, Case{ScheduleKind::zero_bubble_v, 3, 2, 8}}) {
    PipelineShape shape;
    shape.ranks = c.ranks;
    shape.virtual_stages = c.chunks;
    shape.micro_batches = c.micro_batches;
    shape.schedule = c.kind;
    const ScheduleMoments& moments = memo.get(shape);
    ASSERT_EQ(moments.micro_batches, c.micro_batches);
    const specs::Schedule schedule =
        specs::lower(specs::generate_schedule(c.kind, c.ranks, c.chunks, c.micro_batches));
    for (std::int32_t rank = 0; rank < c.ranks; ++rank) {
      const std::vector<Holdings>& fullest = moments.of_rank.at(static_cast<std::size_t>(rank));
      std::vector<Holdings> all;
      specs::follow_holdings(schedule, rank, [&](const Holdings& moment) { all.push_back(moment); });
      EXPECT_LE(fullest.size(), all.size());
      for (int round = 0; round < 20; ++round) {
        const Weights weights(c.chunks, random);
        const auto most = [&](const std::vector<Holdings>& list) {
          double bytes = 0;
          for (const Holdings& moment : list) bytes = std::max(bytes, weights.of(moment, c.ranks));
          return bytes;
        };
        EXPECT_DOUBLE_EQ(most(fullest), most(all)) << name_of(c.kind) << " rank " << rank;
      }
    }
  }
}

TEST(ScheduleMoments, FollowNoMoreMicroBatchesThanAreInTheSteadyState) {
  const ScheduleMomentsMemo memo;
  PipelineShape shape;
  shape.ranks = 4;
  shape.micro_batches = 1000;
  const ScheduleMoments& moments = memo.get(shape);
  EXPECT_EQ(moments.micro_batches, 16);
  shape.micro_batches = 2000;
  EXPECT_EQ(&memo.get(shape), &moments);
}

}  // namespace
}  // namespace cost_models
