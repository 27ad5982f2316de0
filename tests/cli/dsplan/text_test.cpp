#include "cli/dsplan/output/text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/dsplan/output/json.h"

namespace cli {
namespace {

using planner::Column;
using planner::Facts;
using planner::Notes;
using planner::Quantity;
using planner::Report;
using planner::Table;

Report small_report() {
  Report report;
  Table table{"costs", "Costs", {}, {}, true};
  table.columns = {
      {"term", "term"}, {"seconds", "time", Quantity::seconds}, {"bytes", "moved", Quantity::bytes}};
  table.rows = {{std::string("attention"), 1.5, std::int64_t{2048}},
                {std::string("a term with a µ"), 0.25, planner::Cell()},
                {std::string("step"), 1.75, planner::Cell()}};
  report.sections.push_back(table);
  return report;
}

TEST(TextOutput, AlignsColumnsByWhatIsSeenNotByBytes) {
  EXPECT_EQ(render_text(small_report(), {}),
            "Costs\n"
            "  term               time     moved\n"
            "  ---------------------------------\n"
            "  attention        1.50 s  2.00 KiB\n"
            "  a term with a µ  250 ms\n"
            "  ---------------------------------\n"
            "  step             1.75 s\n");
}

TEST(TextOutput, StaysWithinTheWidthByWrappingTheLastTextColumn) {
  Table table{"t", "", {{"n", "n", Quantity::count}, {"why", "why"}}, {}, false};
  table.rows = {
      {std::int64_t{1}, std::string("one two three four five six seven eight nine ten eleven twelve")}};
  Report report;
  report.sections.push_back(table);
  const std::string text = render_text(report, {.width = 40});
  std::size_t start = 0;
  int lines = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos;
       start = end + 1, end = text.find('\n', start)) {
    EXPECT_LE(display_width(text.substr(start, end - start)), 40);
    ++lines;
  }
  EXPECT_EQ(lines, 4);
}

TEST(TextOutput, ColourOnlyWhereAskedFor) {
  EXPECT_EQ(render_text(small_report(), {}).find('\033'), std::string::npos);
  EXPECT_NE(render_text(small_report(), {.colour = true}).find("\033[1mCosts\033[0m"), std::string::npos);
}

TEST(TextOutput, EmptySectionsLeaveNoTitle) {
  Report report;
  report.sections.push_back(Table{"t", "Nothing", {{"a", "a"}}, {}, false});
  report.sections.push_back(Notes{"n", "No notes", {}});
  EXPECT_EQ(render_text(report, {}), "");
}

TEST(JsonOutput, CarriesTheSameNumbersUnroundedUnderTheirUnit) {
  Report report = small_report();
  report.sections.push_back(
      Facts{"plan", "Plan", {{"step_seconds", "step", Quantity::seconds, 1.0 / 3, "about"}}});
  report.sections.push_back(Notes{"advice", "Advice", {"first", "second"}});
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["costs"][0]["seconds"], 1.5);
  EXPECT_EQ(json["costs"][0]["bytes"], 2048);
  EXPECT_TRUE(json["costs"][1]["bytes"].is_null());
  EXPECT_EQ(json["plan"]["step_seconds"], 1.0 / 3);
  EXPECT_EQ(json["plan"]["step_seconds_note"], "about");
  EXPECT_EQ(json["advice"], (nlohmann::json{"first", "second"}));
}

}  // namespace
}  // namespace cli
