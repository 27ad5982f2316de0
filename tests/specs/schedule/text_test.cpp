#include "specs/schedule/text.h"

#include <random>

#include <gtest/gtest.h>

#include "specs/schedule/lowering.h"
#include "tests/specs/schedule/schedules.h"

namespace specs {
namespace {

Schedule shape_of(Schedule schedule) {
  schedule.rank_actions.clear();
  return schedule;
}

/// A shape of one pipeline rank.
Schedule one_rank(std::int32_t micro_batches, std::int32_t virtual_stages = 1) {
  return {.kind = virtual_stages == 1 ? ScheduleKind::gpipe : ScheduleKind::interleaved,
          .virtual_stages = virtual_stages,
          .micro_batches = micro_batches,
          .rank_actions = {}};
}

std::string error_of(const std::string& line, const Schedule& shape = one_rank(8)) {
  const Result<Schedule> result = from_text(shape, {line}, "plan.json");
  EXPECT_FALSE(result.ok()) << line;
  if (result.ok() || result.diagnostics.entries().size() != 1) return "?";
  const Diagnostic& error = result.diagnostics.entries().front();
  return std::to_string(error.position.line) + ":" + std::to_string(error.position.column) + " " +
         error.message + " | " + error.seen;
}

TEST(ScheduleText, IsTheRunLengthOf1F1B) {
  const Schedule schedule = generate_schedule(ScheduleKind::one_forward_one_backward, 4, 1, 32);
  EXPECT_EQ(to_text(schedule), (std::vector<std::string>{"F0-2 (F3 B0)x29 B29-31", "F0-1 (F2 B0)x30 B30-31",
                                                         "F0 (F1 B0)x31 B31", "(F0 B0)x32"}));
}

TEST(ScheduleText, NestsGroupsForInterleavedSchedules) {
  const Schedule schedule = generate_schedule(ScheduleKind::interleaved, 4, 2, 32);
  EXPECT_EQ(to_text(schedule).at(1), "1:F0-3 5:F0-3 ((1:F4 5:B0)x4 (5:F4 1:B0)x4)x7+4 5:B28-31 1:B28-31");
}

TEST(ScheduleText, PrintAndParseAreInverse) {
  for (const ScheduleCase& c : all_small_cases())
    for (const Schedule& schedule :
         {c.generate(),
          lower(c.generate(), {.tied_embeddings = true, .zero_stage = 3, .reshard_before = {1}})}) {
      const Result<Schedule> parsed = from_text(shape_of(schedule), to_text(schedule));
      ASSERT_TRUE(parsed.ok()) << c << parsed.diagnostics.render();
      ASSERT_EQ(*parsed, schedule) << c;
    }
}

TEST(ScheduleText, PrintAndParseAreInverseForActionsInAnyOrder) {
  std::mt19937 random(7);
  const auto below = [&](int bound) {
    return static_cast<std::int32_t>(random() % static_cast<unsigned>(bound));
  };
  for (int round = 0; round < 500; ++round) {
    Schedule schedule = one_rank(1 + below(4), 1 + below(3));
    schedule.rank_actions.emplace_back();
    for (int count = below(40); count > 0; --count) {
      const auto kind = EnumNames<ActionKind>::names.at(static_cast<std::size_t>(below(13))).first;
      schedule.rank_actions[0].push_back(
          {kind, below(schedule.virtual_stages), below(schedule.micro_batches + 1) - 1});
    }
    const Result<Schedule> parsed = from_text(shape_of(schedule), to_text(schedule));
    ASSERT_TRUE(parsed.ok()) << parsed.diagnostics.render();
    ASSERT_EQ(*parsed, schedule) << to_text(schedule)[0];
  }
}

TEST(ScheduleText, StaysShortForLongSteps) {
  for (const ScheduleCase& c : {ScheduleCase{ScheduleKind::gpipe, 64, 1, 4096},
                                ScheduleCase{ScheduleKind::one_forward_one_backward, 64, 1, 4096},
                                ScheduleCase{ScheduleKind::interleaved, 32, 6, 1000},
                                ScheduleCase{ScheduleKind::zero_bubble_v, 32, 2, 1000},
                                ScheduleCase{ScheduleKind::dual_pipe_v, 32, 2, 1000}}) {
    for (const std::string& line : to_text(c.generate())) EXPECT_LT(line.size(), 1500U) << c << "\n" << line;
  }
}

TEST(ScheduleText, AcceptsAnySpacing) {
  const Result<Schedule> parsed = from_text(one_rank(8), {"  F0-3 ( F4  B0 )x2 (RD)x1 "});
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics.render();
  EXPECT_EQ(to_text(*parsed).front(), "F0-3 (F4 B0)x2 RD");
}

TEST(ScheduleText, NamesThePlaceOfAnError) {
  EXPECT_EQ(error_of("F0-3 Q4"), "1:6 pipeline rank 0: not an action | Q4");
  EXPECT_EQ(error_of("F0-3 (F4 B0 B1"), "1:6 pipeline rank 0: the group is not closed | (F4");
  EXPECT_EQ(error_of("F0 B0)x2"), "1:6 pipeline rank 0: there is no group to close | )");
  EXPECT_EQ(error_of("(F0 B0)"), "1:1 pipeline rank 0: a group needs its number of rounds | (F0");
  EXPECT_EQ(error_of("(F0 B0)x"), "1:9 pipeline rank 0: expected the number of rounds | ");
  EXPECT_EQ(error_of("(F0 B0)x0"), "1:9 pipeline rank 0: a group has at least one round | 0");
  EXPECT_EQ(error_of("()x3"), "1:1 pipeline rank 0: the group is empty | (");
  EXPECT_EQ(error_of("F5-2"), "1:1 pipeline rank 0: the range ends at 2, before its start 5 | F5-2");
  EXPECT_EQ(error_of("F8"), "1:1 pipeline rank 0: reaches micro-batch 8, the last is 7 | F8");
  EXPECT_EQ(error_of("(F0)x4+3"), "1:1 pipeline rank 0: reaches micro-batch 9, the last is 7 | (F0");
  EXPECT_EQ(error_of("F99999999999"), "1:2 pipeline rank 0: a micro-batch is too large | 99999999999");
  EXPECT_EQ(error_of("3F0"), "1:2 pipeline rank 0: expected : after the stage | F0");
  EXPECT_EQ(error_of("7:F0"), "1:1 pipeline rank 0: stage 7 of a schedule with stages 0 to 0 | 7:F0");
  EXPECT_EQ(error_of("F0", one_rank(8, 2)),
            "1:1 pipeline rank 0: the rank holds 2 stages, which one is not said | F0");
  EXPECT_EQ(error_of("F0,F1"), "1:3 pipeline rank 0: expected a space | ,F1");
}

TEST(ScheduleText, RefusesWhatWouldExpandWithoutEnd) {
  EXPECT_EQ(error_of("(RD)x2000000000"),
            "1:1 pipeline rank 0: more than 208 actions for 8 micro-batches of 1 stages | (RD");
  std::string nested = "RD";
  for (int depth = 0; depth < 12; ++depth) nested = "(" + nested + ")x9";
  EXPECT_NE(error_of(nested).find("more than 208 actions"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '(')).find("nested deeper than 16"), std::string::npos);
}

TEST(ScheduleText, RefusesAnotherNumberOfRanks) {
  const Result<Schedule> result = from_text(one_rank(8), {"F0", "F0"}, "plan.json");
  EXPECT_EQ(result.diagnostics.entries().at(0).message, "2 lines of actions for 1 pipeline ranks");
}

}  // namespace
}  // namespace specs
