#include "specs/schedule/lowering.h"

#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "specs/schedule/text.h"
#include "specs/schedule/verify.h"
#include "tests/specs/schedule/schedules.h"

namespace specs {
namespace {

TEST(LowerSchedule, PlacesTransfersWhereTheSenderIsReady) {
  const Schedule lowered = lower(generate_schedule(ScheduleKind::one_forward_one_backward, 2, 1, 3));
  EXPECT_EQ(to_text(lowered), (std::vector<std::string>{
                                  "(F0 SA0)x2 RG0 B0 F2 SA2 (RG1 B1)x2 RD",
                                  "RA0 F0 RA1 B0 SG0 F1 B1 RA2 SG1 F2 B2 SG2 RD",
                              }));
}

TEST(LowerSchedule, NeedsNoTransferOnOneRank) {
  EXPECT_EQ(to_text(lower(generate_schedule(ScheduleKind::gpipe, 1, 1, 4))).front(), "F0-3 B0-3 RD");
}

TEST(LowerSchedule, SumsTiedEmbeddingsBeforeAnyOfThemIsReduced) {
  const Schedule lowered = lower(generate_schedule(ScheduleKind::gpipe, 2, 1, 1), {.tied_embeddings = true});
  EXPECT_EQ(to_text(lowered), (std::vector<std::string>{"F0 SA0 RG0 B0 RT RD", "RA0 F0 B0 SG0 RT RD"}));
}

TEST(LowerSchedule, ReducesAndGathersForEachMicroBatchWithZero3) {
  const Schedule lowered = lower(generate_schedule(ScheduleKind::gpipe, 1, 1, 2), {.zero_stage = 3});
  EXPECT_EQ(to_text(lowered).front(), "(GP0 F0 RP0)x2 (GP0 B0 RP0 RD0)x2");
}

TEST(LowerSchedule, ReshardsBeforeUseOnBothSidesOfABoundary) {
  const Schedule lowered = lower(generate_schedule(ScheduleKind::gpipe, 2, 1, 1), {.reshard_before = {1}});
  EXPECT_EQ(to_text(lowered), (std::vector<std::string>{"F0 1:XA0 XG0 B0 RD", "XA0 F0 B0 0:XG0 RD"}));
}

TEST(LowerSchedule, EveryOptionPassesTheVerifier) {
  for (const ScheduleCase& c : all_small_cases()) {
    if (c.micro_batches % 3 != 0 || c.group != 0) continue;
    for (std::int64_t zero_stage : {0, 1, 2, 3}) {
      const Schedule lowered =
          lower(c.generate(), {.tied_embeddings = true, .zero_stage = zero_stage, .reshard_before = {1, 3}});
      ASSERT_EQ(verify(lowered).render(), "") << c << " zero " << zero_stage;
    }
  }
}

/// Executes a lowered schedule with sends that block until received, at random speeds: an independent check
/// that what the verifier accepts also ends, whatever the timing. Returns the number of actions executed.
std::size_t execute_with_random_delays(const Schedule& schedule, std::mt19937& random) {
  const std::size_t ranks = schedule.rank_actions.size();
  std::vector<std::size_t> next(ranks);
  std::vector<int> delay(ranks);
  std::size_t executed = 0;
  const auto current = [&](std::size_t rank) -> const Action* {
    return next[rank] < schedule.rank_actions[rank].size() ? &schedule.rank_actions[rank][next[rank]]
                                                           : nullptr;
  };
  const auto finish = [&](std::size_t rank) {
    ++next[rank];
    ++executed;
    delay[rank] = static_cast<int>(random() % 5);
  };
  for (int idle_rounds = 0; idle_rounds < 10;) {
    const std::size_t before = executed;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const Action* action = current(rank);
      if (action == nullptr) continue;
      if (delay[rank] > 0) {
        --delay[rank];
        continue;
      }
      std::int32_t peer_stage = -1;
      ActionKind peer_kind = action->kind;
      switch (action->kind) {
        case ActionKind::send_activation:
          peer_stage = action->stage + 1;
          peer_kind = ActionKind::receive_activation;
          break;
        case ActionKind::send_gradient:
          peer_stage = action->stage - 1;
          peer_kind = ActionKind::receive_gradient;
          break;
        case ActionKind::reduce_tied:
          peer_stage = action->stage == 0 ? schedule.stages() - 1 : 0;
          break;
        case ActionKind::receive_activation:
        case ActionKind::receive_gradient:
          continue;  // its sender moves both
        default:
          finish(rank);
          continue;
      }
      const auto peer = static_cast<std::size_t>(schedule.rank_of_stage(peer_stage));
      const Action* other = current(peer);
      if (other == nullptr || delay[peer] > 0 || other->kind != peer_kind || other->stage != peer_stage ||
          other->micro_batch != action->micro_batch)
        continue;
      finish(rank);
      finish(peer);
    }
    idle_rounds = executed == before ? idle_rounds + 1 : 0;
  }
  return executed;
}

TEST(LowerSchedule, EndsUnderRandomDelays) {
  std::mt19937 random(20);
  for (const ScheduleCase& c : all_small_cases()) {
    if (c.group != 0) continue;
    const Schedule lowered = lower(c.generate(), {.tied_embeddings = true});
    std::size_t actions = 0;
    for (const std::vector<Action>& list : lowered.rank_actions) actions += list.size();
    ASSERT_EQ(execute_with_random_delays(lowered, random), actions) << c;
  }
}

}  // namespace
}  // namespace specs
