#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "specs/plan/plan_json.h"
#include "specs/schedule/text.h"
#include "tests/specs/plan/sample_plan.h"

namespace specs {
namespace {

class TextMutator {
 public:
  explicit TextMutator(unsigned seed) : random_(seed) {}

  /// One to three edits: a byte changed, a slice dropped, doubled or moved, a number replaced.
  std::string mutate(std::string text) {
    for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(below(40), text.size() - at);
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(at, length));
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        default:
          replace_number(text, at);
      }
    }
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void replace_number(std::string& text, std::size_t from) {
    static const std::vector<std::string> numbers{"0",    "-1",   "1",    "2",       "3",
                                                  "1e99", "0.5",  "4096", "1048577", "9223372036854775807",
                                                  "null", "\"\"", "[]"};
    const std::size_t begin = text.find_first_of("0123456789", from);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789.e+", begin), text.size());
    text.replace(begin, end - begin, numbers[below(numbers.size())]);
  }

  std::mt19937 random_;
};

TEST(PlanMutation, EveryEditIsReadAsThePlanItIsOrRefusedWithAPlace) {
  const std::string text = write_plan(sample_plan());
  TextMutator mutator(3);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string edited = mutator.mutate(text);
    const Result<Plan> read = read_plan_text(edited, "plan.json");
    if (read.ok()) {
      // What was read is a plan that can be written and read again.
      ASSERT_TRUE(read_plan_text(write_plan(*read), "plan.json").ok()) << edited;
      continue;
    }
    ++refused;
    ASSERT_FALSE(read.diagnostics.empty());
    for (const Diagnostic& error : read.diagnostics.entries())
      EXPECT_GE(error.position.line, 1) << error.message;
  }
  EXPECT_GT(refused, 200);
}

TEST(ScheduleTextMutation, EveryEditIsParsedOrRefusedWithAPlace) {
  const Schedule shape{.kind = ScheduleKind::interleaved,
                       .pipeline_ranks = 1,
                       .virtual_stages = 2,
                       .micro_batches = 16,
                       .rank_actions = {}};
  const std::string text = "0:F0-3 1:F0-3 ((0:F4 &1:B0)x4 (1:F4 0:B0)x4)x3+4 1:B12-15 0:B12-15 0:RD 1:RD";
  TextMutator mutator(4);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const Result<Schedule> parsed = from_text(shape, {mutator.mutate(text)});
    refused += parsed.ok() ? 0 : 1;
    if (parsed.ok()) {
      ASSERT_EQ(*from_text(shape, to_text(*parsed)), *parsed);
    } else {
      ASSERT_GE(parsed.diagnostics.entries().at(0).position.column, 1);
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace specs
