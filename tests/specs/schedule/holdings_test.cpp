#include "specs/schedule/holdings.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "specs/schedule/in_flight.h"
#include "specs/schedule/lowering.h"
#include "tests/specs/schedule/schedules.h"

namespace specs {
namespace {

std::int32_t in_flight(const Holdings& moment) {
  return std::accumulate(moment.kept.begin(), moment.kept.end(), 0) +
         std::accumulate(moment.deferred.begin(), moment.deferred.end(), 0);
}

TEST(Holdings, AtItsPeakARankHasTheActivationsOfTheClosedForm) {
  for (const ScheduleCase& c : {ScheduleCase{ScheduleKind::gpipe, 4, 1, 6},
                                {ScheduleKind::one_forward_one_backward, 4, 1, 8},
                                {ScheduleKind::one_forward_one_backward, 8, 1, 3},
                                {ScheduleKind::interleaved, 4, 3, 8},
                                {ScheduleKind::interleaved, 2, 2, 6}}) {
    const Schedule lowered = lower(c.generate());
    for (std::int32_t rank = 0; rank < c.pipeline_ranks; ++rank) {
      std::int32_t peak = 0;
      follow_holdings(lowered, rank,
                      [&](const Holdings& moment) { peak = std::max(peak, in_flight(moment)); });
      EXPECT_EQ(peak, peak_in_flight(c.kind, c.pipeline_ranks, c.virtual_stages, c.micro_batches, rank))
          << c << " rank " << rank;
    }
  }
}

TEST(Holdings, WhatArrivesIsUsedOnceAndNothingIsLeft) {
  for (const ScheduleCase& c : {ScheduleCase{ScheduleKind::one_forward_one_backward, 4, 1, 8},
                                {ScheduleKind::interleaved, 2, 3, 4},
                                {ScheduleKind::zero_bubble_h1, 4, 1, 6},
                                {ScheduleKind::zero_bubble_v, 3, 2, 6}}) {
    const Schedule lowered = lower(c.generate());
    for (std::int32_t rank = 0; rank < c.pipeline_ranks; ++rank) {
      Holdings last;
      std::int64_t visited = 0;
      follow_holdings(lowered, rank, [&](const Holdings& moment) {
        EXPECT_GE(std::min({moment.arrived_activations, moment.arrived_gradients, moment.own_gradients}), 0);
        EXPECT_GE(*std::min_element(moment.kept.begin(), moment.kept.end()), 0);
        last = moment;
        ++visited;
      });
      EXPECT_EQ(in_flight(last), 1) << c << " rank " << rank;  // what the last action works on
      EXPECT_EQ(last.arrived_activations, 0);
      const std::int64_t passes =
          c.kind == ScheduleKind::zero_bubble_h1 || c.kind == ScheduleKind::zero_bubble_v ? 3 : 2;
      EXPECT_EQ(visited, passes * c.virtual_stages * c.micro_batches);
    }
  }
}

TEST(Holdings, AMicroBatchWaitsForItsWeightGradientAfterItsInputGradient) {
  const ScheduleCase c{ScheduleKind::zero_bubble_h1, 2, 1, 3};
  std::int32_t most_deferred = 0;
  follow_holdings(lower(c.generate()), 0, [&](const Holdings& moment) {
    most_deferred = std::max(most_deferred, moment.deferred.front());
    if (moment.action.kind != ActionKind::weight_gradient) return;
    EXPECT_GE(moment.deferred.front(), 1);
  });
  EXPECT_GE(most_deferred, 1);
}

}  // namespace
}  // namespace specs
