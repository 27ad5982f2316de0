#include "specs/schedule/grid.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "specs/schedule/generate.h"

namespace specs {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class ScheduleGrid : public testing::TestWithParam<ScheduleKind> {};

/// A picture that changed is reviewed by eye, then written anew with UPDATE_GOLDEN=1.
TEST_P(ScheduleGrid, IsTheReviewedPictureForFourRanksAndEightMicroBatches) {
  const std::string path = "tests/specs/schedule/golden/" + std::string(name_of(GetParam())) + ".txt";
  const std::int32_t virtual_stages = schedule_refusal(GetParam(), 4, 1, 8).empty() ? 1 : 2;
  const std::string grid = to_grid(generate_schedule(GetParam(), 4, virtual_stages, 8));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << grid;
  EXPECT_EQ(grid, read_file(path));
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ScheduleGrid, testing::ValuesIn([] {
                           std::vector<ScheduleKind> kinds;
                           for (const auto& [kind, name] : EnumNames<ScheduleKind>::names)
                             kinds.push_back(kind);
                           return kinds;
                         }()),
                         [](const auto& kind) {
                           std::string name(name_of(kind.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Columns in which the first rank is idle before its last action.
std::size_t idle_columns(const std::string& grid) {
  std::string row = grid.substr(0, grid.find('\n'));
  row.erase(row.find_last_not_of(" .") + 1);
  std::size_t idle = 0;
  std::istringstream words(row);
  for (std::string word; words >> word;) idle += word == ".." ? 1 : 0;
  return idle;
}

TEST(ScheduleGrid, BubblesOfTheFirstRankAreTheClosedForms) {
  // F = I = W = 1, B = 2, four ranks: (p − 1)(F + B) for gpipe and 1f1b, that over v for interleaved (a chunk
  // here takes as long as a stage there), (p − 1)(F + I − W) for zb-h1, nothing for zb-h2.
  const auto bubble = [](ScheduleKind kind, std::int32_t virtual_stages) {
    return idle_columns(to_grid(generate_schedule(kind, 4, virtual_stages, 8)));
  };
  EXPECT_EQ(bubble(ScheduleKind::gpipe, 1), 9U);
  EXPECT_EQ(bubble(ScheduleKind::one_forward_one_backward, 1), 9U);
  EXPECT_EQ(bubble(ScheduleKind::interleaved, 2), 9U);
  EXPECT_EQ(bubble(ScheduleKind::zero_bubble_h1, 1), 3U);
  EXPECT_EQ(bubble(ScheduleKind::zero_bubble_h2, 1), 0U);
}

}  // namespace
}  // namespace specs
