#include "specs/schedule/generate.h"

#include <set>

#include <gtest/gtest.h>

#include "specs/schedule/in_flight.h"
#include "specs/schedule/lowering.h"
#include "specs/schedule/text.h"
#include "specs/schedule/verify.h"
#include "tests/specs/schedule/schedules.h"

namespace specs {
namespace {

TEST(GenerateSchedule, EverySmallCasePassesTheVerifierAndSoDoesItsLowering) {
  const std::vector<ScheduleCase> cases = all_small_cases();
  std::set<ScheduleKind> kinds;
  for (const ScheduleCase& c : cases) {
    kinds.insert(c.kind);
    const Schedule schedule = c.generate();
    ASSERT_EQ(verify(schedule).render(), "") << c;
    for (bool tied : {false, true})
      ASSERT_EQ(verify(lower(schedule, {.tied_embeddings = tied})).render(), "") << c << " tied " << tied;
  }
  EXPECT_EQ(kinds.size(), EnumNames<ScheduleKind>::names.size());
  EXPECT_GT(cases.size(), 1000U);
}

TEST(GenerateSchedule, PeakInFlightIsTheClosedForm) {
  for (const ScheduleCase& c : all_small_cases()) {
    const std::vector<std::int64_t> peaks = count_peak_in_flight(c.generate());
    const bool exact = c.kind == ScheduleKind::gpipe || c.kind == ScheduleKind::one_forward_one_backward ||
                       c.kind == ScheduleKind::interleaved || c.micro_batches >= 2 * c.pipeline_ranks;
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      const std::int64_t closed_form =
          peak_in_flight(c.kind, c.pipeline_ranks, c.virtual_stages, c.micro_batches,
                         static_cast<std::int64_t>(rank), c.group);
      ASSERT_LE(peaks[rank], closed_form) << c << " rank " << rank;
      if (exact) {
        ASSERT_EQ(peaks[rank], closed_form) << c << " rank " << rank;
      }
    }
  }
}

TEST(GenerateSchedule, PeakInFlightOfTheTextbookCases) {
  // Four ranks, eight micro-batches.
  const auto peaks = [](ScheduleKind kind, std::int32_t virtual_stages) {
    return count_peak_in_flight(generate_schedule(kind, 4, virtual_stages, 8));
  };
  using Peaks = std::vector<std::int64_t>;
  EXPECT_EQ(peaks(ScheduleKind::gpipe, 1), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks(ScheduleKind::one_forward_one_backward, 1), (Peaks{4, 3, 2, 1}));
  EXPECT_EQ(peaks(ScheduleKind::interleaved, 2), (Peaks{11, 9, 7, 5}));
  EXPECT_EQ(peaks(ScheduleKind::zero_bubble_h1, 1), (Peaks{4, 4, 4, 4}));
  EXPECT_EQ(peaks(ScheduleKind::zero_bubble_h2, 1), (Peaks{7, 7, 7, 7}));
  EXPECT_EQ(peaks(ScheduleKind::zero_bubble_v, 2), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks(ScheduleKind::dual_pipe_v, 2), (Peaks{9, 9, 9, 9}));
}

TEST(GenerateSchedule, GradientsOfAStageAreMadeInTheOrderOfTheMicroBatches) {
  // So that sums are the same whatever the schedule, bit for bit.
  for (const ScheduleCase& c : all_small_cases())
    for (const std::vector<Action>& actions : c.generate().rank_actions) {
      std::vector<std::int32_t> next(static_cast<std::size_t>(c.pipeline_ranks * c.virtual_stages));
      for (const Action& action : actions) {
        if (action.kind != ActionKind::backward && action.kind != ActionKind::weight_gradient) continue;
        ASSERT_EQ(action.micro_batch, next[static_cast<std::size_t>(action.stage)]++) << c;
      }
    }
}

TEST(ScheduleRefusal, NamesTheEquationThatFails) {
  EXPECT_EQ(schedule_refusal(ScheduleKind::interleaved, 4, 1, 8),
            "schedule interleaved needs virtual_stages ≥ 2, not 1");
  EXPECT_EQ(schedule_refusal(ScheduleKind::one_forward_one_backward, 4, 2, 8),
            "schedule 1f1b needs virtual_stages = 1, not 2");
  EXPECT_EQ(schedule_refusal(ScheduleKind::zero_bubble_v, 4, 3, 8),
            "schedule zb-v needs virtual_stages = 2, not 3");
  EXPECT_EQ(schedule_refusal(ScheduleKind::gpipe, 4, 1, 8, 4),
            "micro_batch_group 4 belongs to schedule interleaved; gpipe needs 0");
  EXPECT_EQ(schedule_refusal(ScheduleKind::interleaved, 4, 2, 8, 3),
            "micro_batch_group 3 must be 0 or in [4, 16777216], at least the pipeline ranks");
  EXPECT_EQ(schedule_refusal(ScheduleKind::dual_pipe_v, 4, 2, 7),
            "schedule dualpipe-v needs micro-batches ≥ 2 × pipeline ranks 4 = 8, not 7");
  EXPECT_EQ(schedule_refusal(ScheduleKind::gpipe, 0, 1, 8), "pipeline ranks 0 is not in [1, 16777216]");
  EXPECT_EQ(schedule_refusal(ScheduleKind::gpipe, 1, 1, -3), "micro-batches -3 is not in [1, 16777216]");
  EXPECT_EQ(schedule_refusal(ScheduleKind::interleaved, 4, 2, 7, 5), "");
}

}  // namespace
}  // namespace specs
