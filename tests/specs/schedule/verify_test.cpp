#include "specs/schedule/verify.h"

#include <gtest/gtest.h>

#include "specs/schedule/lowering.h"
#include "specs/schedule/text.h"
#include "tests/specs/schedule/schedules.h"

namespace specs {
namespace {

/// What verify says of lines of text, without the "error: " that render puts before it.
std::string broken(const std::vector<std::string>& lines, std::int32_t micro_batches,
                   std::int32_t virtual_stages = 1, ScheduleKind kind = ScheduleKind::gpipe) {
  const Schedule shape{.kind = kind,
                       .layout = layout_of(kind),
                       .pipeline_ranks = static_cast<std::int32_t>(lines.size()),
                       .virtual_stages = virtual_stages,
                       .micro_batches = micro_batches,
                       .rank_actions = {}};
  const Result<Schedule> schedule = from_text(shape, lines);
  EXPECT_TRUE(schedule.ok()) << schedule.diagnostics.render();
  const Diagnostics diagnostics = verify(*schedule);
  EXPECT_LE(diagnostics.entries().size(), 1U);
  return diagnostics.empty() ? "" : diagnostics.entries().front().message;
}

TEST(VerifySchedule, AcceptsTheSmallestPipeline) {
  EXPECT_EQ(broken({"F0-1 B0-1", "F0-1 B0-1"}, 2), "");
  EXPECT_EQ(broken({"F0 I0 W0"}, 1), "");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RD", "RA0 F0 B0 SG0 RD"}, 1), "");
}

TEST(VerifySchedule, NamesWhatIsMissingOrTwice) {
  EXPECT_EQ(broken({"F0-1 B0", "F0-1 B0-1"}, 2),
            "pipeline rank 0: the list ends without the backward of stage 0, micro-batch 1");
  EXPECT_EQ(broken({"F0-1 B0-1", "F0 B0"}, 2),
            "pipeline rank 1: the list ends without the forward of stage 1, micro-batch 1");
  EXPECT_EQ(broken({"F0 I0"}, 1),
            "pipeline rank 0: the list ends without the weight gradient of stage 0, micro-batch 0");
  EXPECT_EQ(broken({"F0 F0 B0"}, 1), "pipeline rank 0, action 1 (F0 of stage 0): a second forward");
  EXPECT_EQ(broken({"F0 B0 B0"}, 1), "pipeline rank 0, action 2 (B0 of stage 0): a second input gradient");
  EXPECT_EQ(broken({"F0 I0 W0 W0"}, 1),
            "pipeline rank 0, action 3 (W0 of stage 0): a second weight gradient");
  EXPECT_EQ(broken({"F0 B0 W0"}, 1),
            "pipeline rank 0, action 2 (W0 of stage 0): a weight gradient beside a whole backward");
}

TEST(VerifySchedule, NamesAnOrderThatIsWrongOnOneRank) {
  EXPECT_EQ(broken({"B0 F0"}, 1), "pipeline rank 0, action 0 (B0 of stage 0): a gradient before the forward");
  EXPECT_EQ(broken({"F0 W0 I0"}, 1),
            "pipeline rank 0, action 1 (W0 of stage 0): a weight gradient before the input gradient");
}

TEST(VerifySchedule, NamesAnOrderThatIsWrongAcrossRanks) {
  EXPECT_EQ(
      broken({"F0 B0 F1 B1", "F1 B1 F0 B0"}, 2),
      "pipeline rank 0, action 1 (B0 of stage 0): waits for the gradient of stage 1, which comes after it in "
      "every order");
  EXPECT_EQ(
      broken({"1:F0 0:F0 0:B0 1:B0"}, 1, 2, ScheduleKind::interleaved),
      "pipeline rank 0, action 0 (F0 of stage 1): waits for the forward of stage 0, which comes after it in "
      "every order");
}

TEST(VerifySchedule, NamesAStageOnAnotherRank) {
  EXPECT_EQ(broken({"1:F0 1:B0", "0:F0 0:B0"}, 1, 2, ScheduleKind::interleaved),
            "pipeline rank 0, action 0 (F0 of stage 1): stage 1 is on pipeline rank 1");
}

TEST(VerifySchedule, HoldsThePromiseOfMemory) {
  EXPECT_EQ(
      broken({"F0-2 B0-2", "F0 B0 F1 B1 F2 B2"}, 3, 1, ScheduleKind::one_forward_one_backward),
      "pipeline rank 0, action 2 (F2 of stage 0): 3 activations alive, schedule 1f1b promises at most 2");
  EXPECT_EQ(broken({"F0-2 B0-2", "F0 B0 F1 B1 F2 B2"}, 3, 1, ScheduleKind::gpipe), "");
}

TEST(VerifySchedule, NamesTransfersThatAreMissingOrWrong) {
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RD", "F0 B0 SG0 RD"}, 1),
            "pipeline rank 1, action 0 (F0 of stage 1): its activation is not received before");
  EXPECT_EQ(broken({"F0 SA0 B0 RD", "RA0 F0 B0 SG0 RD"}, 1),
            "pipeline rank 0, action 2 (B0 of stage 0): its gradient is not received before");
  EXPECT_EQ(broken({"SA0 F0 RG0 B0 RD", "RA0 F0 B0 SG0 RD"}, 1),
            "pipeline rank 0, action 0 (SA0 of stage 0): sends what is not made yet");
  EXPECT_EQ(broken({"F0 RG0 B0 RD", "RA0 F0 B0 SG0 RD"}, 1),
            "pipeline rank 1, action 0 (RA0 of stage 1): pipeline rank 0 never sends it");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RD", "RA0 F0 B0 SG0 SA0 RD"}, 1),
            "pipeline rank 1, action 4 (SA0 of stage 1): there is no stage 2 to send to");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RD SA0", "RA0 F0 B0 SG0 RD"}, 1),
            "pipeline rank 0, action 5 (SA0 of stage 0): stands twice");
  EXPECT_EQ(broken({"0:F0 0:SA0 1:F0 1:B0 0:B0 0:RD 1:RD"}, 1, 2, ScheduleKind::interleaved),
            "pipeline rank 0, action 1 (SA0 of stage 0): stage 1 is on the same rank");
}

TEST(VerifySchedule, NamesMessagesThatOvertakeEachOther) {
  EXPECT_EQ(broken({"F0-1 SA0-1 RG0-1 B0-1 RD", "RA1 RA0 F0-1 B0-1 SG0-1 RD"}, 2),
            "pipeline rank 1, action 0 (RA1 of stage 1): receives the activation of micro-batch 1 into stage "
            "1, but "
            "pipeline rank 0 sends the activation of micro-batch 0 into stage 1 first");
}

TEST(VerifySchedule, FindsADeadlockOfBlockingSends) {
  // Each sends before it receives: fine where sends are buffered, never ends where they block.
  EXPECT_EQ(
      broken({"F0 SA0 F1 SA1 RG0 B0 RG1 B1 RD", "RA0 F0 B0 SG0 RA1 F1 B1 SG1 RD"}, 2),
      "pipeline rank 0, action 3 (SA1 of stage 0): deadlock: never ends where a send blocks until it is "
      "received");
  EXPECT_EQ(
      broken({"F0 SA0 RG1 F1 SA1 RG0 B0 B1 RD", "RA0 F0 B0 SG0 RA1 F1 B1 SG1 RD"}, 2),
      "pipeline rank 0, action 2 (RG1 of stage 0): receives the gradient of micro-batch 1 into stage 0, but "
      "pipeline rank 1 sends the gradient of micro-batch 0 into stage 0 first");
  EXPECT_EQ(broken({"F0 SA0 RG0 F1 B0 SA1 RG1 B1 RD", "RA0 RA1 F0-1 B0 SG0 B1 SG1 RD"}, 2),
            "pipeline rank 0, action 2 (RG0 of stage 0): deadlock: never ends, even with buffered sends");
}

TEST(VerifySchedule, NamesReductionsThatAreWrong) {
  EXPECT_EQ(broken({"F0-1 B0 RD B1"}, 2),
            "pipeline rank 0, action 3 (RD of stage 0): reduces after 1 of 2 micro-batches");
  EXPECT_EQ(broken({"F0-1 B0 RD1 B1 RD0"}, 2),
            "pipeline rank 0, action 3 (RD1 of stage 0): reduces a gradient that is not complete");
  EXPECT_EQ(broken({"F0-1 B0 RD0 B1"}, 2),
            "pipeline rank 0: the gradients of stage 0 are reduced 0 times as a whole and for 1 of 2 "
            "micro-batches");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RD", "RA0 F0 B0 SG0"}, 1),
            "pipeline rank 1: the gradients of stage 1 are never reduced");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RT RD", "RA0 F0 B0 SG0 RD"}, 1),
            "pipeline rank 1: the gradients of stage 1 miss the tied embedding of the other end");
  EXPECT_EQ(broken({"F0 SA0 RG0 B0 RT RD", "RA0 F0 B0 SG0 RD RT"}, 1),
            "pipeline rank 1, action 5 (RT of stage 1): the copies are summed after one of them was reduced");
}

TEST(VerifySchedule, NamesGathersAndReshardsThatAreWrong) {
  EXPECT_EQ(broken({"GP0 F0 RP0 GP0 B0 RP0"}, 1), "");
  EXPECT_EQ(broken({"GP0 F0 RP0 B0"}, 1),
            "pipeline rank 0, action 3 (B0 of stage 0): the parameters are not gathered");
  EXPECT_EQ(broken({"GP0 F0 B0"}, 1), "pipeline rank 0: the list ends with stage 0 still gathered");
  EXPECT_EQ(broken({"GP0 GP0 F0 RP0 B0"}, 1),
            "pipeline rank 0, action 1 (GP0 of stage 0): gathers what is whole already");
  EXPECT_EQ(broken({"F0 1:XA0 1:XG0 0:XG0 B0 RD", "XA0 F0 B0 0:XG0 RD"}, 1),
            "pipeline rank 0, action 2 (XG0 of stage 1): stage 1 is on pipeline rank 1");
  EXPECT_EQ(broken({"F0 1:XA0 0:XG0 B0 RD", "XA0 F0 B0 0:XG0 RD"}, 1), "");
  EXPECT_EQ(broken({"F0 1:XA0 0:XG0 B0 RD", "F0 XA0 B0 0:XG0 RD"}, 1),
            "pipeline rank 1, action 0 (F0 of stage 1): its activation is not received before");
  EXPECT_EQ(broken({"F0 SA0 0:XG0 B0 RD", "XA0 F0 B0 0:XG0 RD"}, 1),
            "pipeline rank 1, action 0 (XA0 of stage 1): one end of a transfer from pipeline rank 0 "
            "reshards, the other does not");
  EXPECT_EQ(broken({"0:F0 1:XA0 1:F0 1:B0 0:XG0 0:B0 0:RD 1:RD"}, 1, 2, ScheduleKind::interleaved), "");
  EXPECT_EQ(broken({"0:F0 1:F0 1:XA0 1:B0 0:B0 0:RD 1:RD"}, 1, 2, ScheduleKind::interleaved),
            "pipeline rank 0, action 1 (F0 of stage 1): its activation is not received before");
}

TEST(VerifySchedule, JudgesActionsThatRunTogetherAsOne) {
  EXPECT_EQ(broken({"F0 F1 &B0 B1"}, 2), "");
  EXPECT_EQ(
      broken({"&F0 B0"}, 1),
      "pipeline rank 0, action 0 (F0 of stage 0): runs together with something that is not its counterpart");
  EXPECT_EQ(
      broken({"F0 &F1 B0 B1"}, 2),
      "pipeline rank 0, action 1 (F1 of stage 0): runs together with something that is not its counterpart");
  // Rank 1 has nothing to give back before it got the forward that is to run beside its gradient.
  EXPECT_EQ(
      broken({"F0 &B0", "F0 B0"}, 1),
      "pipeline rank 0, action 1 (B0 of stage 0): waits for the gradient of stage 1, which comes after it in "
      "every order");
}

/// Every single edit of a lowered schedule that could matter is seen.
TEST(VerifySchedule, CatchesEachActionLeftOut) {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::names) {
    const std::int32_t v = schedule_refusal(kind, 3, 1, 6).empty() ? 1 : 2;
    const Schedule whole = lower(generate_schedule(kind, 3, v, 6), {.tied_embeddings = true});
    for (std::size_t rank = 0; rank < whole.rank_actions.size(); ++rank)
      for (std::size_t index = 0; index < whole.rank_actions[rank].size(); ++index) {
        Schedule edited = whole;
        edited.rank_actions[rank].erase(edited.rank_actions[rank].begin() +
                                        static_cast<std::ptrdiff_t>(index));
        EXPECT_TRUE(verify(edited).has_errors()) << name << " rank " << rank << " action " << index;
      }
  }
}

TEST(VerifySchedule, CatchesEachActionTwice) {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::names) {
    const std::int32_t v = schedule_refusal(kind, 3, 1, 6).empty() ? 1 : 2;
    const Schedule whole = lower(generate_schedule(kind, 3, v, 6), {.tied_embeddings = true});
    for (std::size_t rank = 0; rank < whole.rank_actions.size(); ++rank)
      for (std::size_t index = 0; index < whole.rank_actions[rank].size(); ++index) {
        Schedule edited = whole;
        edited.rank_actions[rank].push_back(edited.rank_actions[rank][index]);
        EXPECT_TRUE(verify(edited).has_errors()) << name << " rank " << rank << " action " << index;
      }
  }
}

}  // namespace
}  // namespace specs
