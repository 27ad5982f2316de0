#include "tests/numerics/covering_array.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace runtime::numerics {
namespace {

using Pair = std::tuple<std::size_t, int, std::size_t, int>;

std::map<Pair, int> pairs_in(const std::vector<CoveringRow>& rows) {
  std::map<Pair, int> found;
  for (const CoveringRow& row : rows)
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) ++found[{a, row[a], b, row[b]}];
  return found;
}

/// All rows that break no rule.
std::vector<CoveringRow> product(const std::vector<int>& values, const std::vector<CoveringRule>& rules) {
  std::vector<CoveringRow> rows{{}};
  for (const int count : values) {
    std::vector<CoveringRow> longer;
    for (const CoveringRow& row : rows)
      for (int value = 0; value < count; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    rows = std::move(longer);
  }
  std::erase_if(rows, [&](const CoveringRow& row) {
    return !std::all_of(rules.begin(), rules.end(),
                        [&](const CoveringRule& rule) { return rule.holds(row); });
  });
  return rows;
}

const std::vector<int> values{4, 3, 3, 2, 5};
const std::vector<CoveringRule> rules{
    {{0, 1, 4}, [](const CoveringRow& row) { return row[0] + row[1] + row[4] < 5; }},
    {{2, 3}, [](const CoveringRow& row) { return row[2] != 2 || row[3] == 1; }},
    {{0, 2}, [](const CoveringRow& row) { return row[0] != 3 || row[2] == 2; }}};

TEST(CoveringArray, HasEveryPairThatSomeLegalRowHasInFarFewerRows) {
  const std::vector<CoveringRow> all = product(values, rules);
  const std::vector<CoveringRow> rows = CoveringArray(values, rules).pairs();
  const auto covered = pairs_in(rows);
  for (const auto& [pair, count] : pairs_in(all)) EXPECT_TRUE(covered.contains(pair));
  EXPECT_LT(rows.size(), all.size() / 3);
}

TEST(CoveringArray, BreaksNoRuleAndRepeatsNoRow) {
  const std::vector<CoveringRow> all = product(values, rules);
  const std::vector<CoveringRow> rows = CoveringArray(values, rules).pairs(3);
  for (const CoveringRow& row : rows) EXPECT_NE(std::find(all.begin(), all.end(), row), all.end());
  EXPECT_EQ(std::set<CoveringRow>(rows.begin(), rows.end()).size(), rows.size());
}

TEST(CoveringArray, HasEveryPairAsOftenAsAsked) {
  const std::vector<int> free{3, 3, 3, 3, 3};
  for (const auto& [pair, count] : pairs_in(CoveringArray(free, {}).pairs(2))) EXPECT_GE(count, 2);
}

TEST(CoveringArray, CompletesARowWithTheLowestValuesThatTheRulesLeave) {
  const CoveringArray array(values, rules);
  EXPECT_EQ(array.complete({open, open, 2, open, open}), (CoveringRow{0, 0, 2, 1, 0}));
  EXPECT_EQ(array.complete({3, open, open, open, open}), (CoveringRow{3, 0, 2, 1, 0}));
  EXPECT_TRUE(array.complete({3, 2, open, open, open}).empty());
}

}  // namespace
}  // namespace runtime::numerics
