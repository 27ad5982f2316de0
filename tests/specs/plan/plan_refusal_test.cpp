#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "specs/plan/json_text.h"
#include "specs/plan/plan_json.h"
#include "tests/specs/plan/sample_plan.h"

namespace specs {
namespace {

using nlohmann::ordered_json;

ordered_json sample_document() { return ordered_json::parse(write_plan(sample_plan())); }

/// What reading the edited sample says.
Diagnostics errors_after(const std::function<void(ordered_json&)>& edit) {
  ordered_json document = sample_document();
  edit(document);
  const Result<Plan> read = read_plan_text(json_text(document), "plan.json");
  EXPECT_EQ(read.ok(), !read.diagnostics.has_errors());
  return read.diagnostics;
}

/// The message of the one error.
std::string error_after(const std::function<void(ordered_json&)>& edit) {
  const Diagnostics diagnostics = errors_after(edit);
  if (diagnostics.entries().size() != 1) return diagnostics.render();
  return diagnostics.entries().front().message;
}

std::string text_from(const Diagnostic& error, std::size_t length) {
  return error.source_line.substr(static_cast<std::size_t>(error.position.column) - 1, length);
}

TEST(PlanRefusal, NamesThePlaceInTheText) {
  std::string text = write_plan(sample_plan());
  const std::size_t at = text.find("\"tensor\": 2");
  ASSERT_NE(at, std::string::npos);
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  text.replace(at, 11, "\"tensor\": \"two\"");
  const Result<Plan> read = read_plan_text(text, "plan.json");
  ASSERT_EQ(read.diagnostics.entries().size(), 1U) << read.diagnostics.render();
  const Diagnostic& error = read.diagnostics.entries().front();
  EXPECT_EQ(error.message, "/placement/stages/0/mesh/tensor: wrong type");
  EXPECT_EQ(error.expected, "an integer of at least 1 and of at most 1125899906842624");
  EXPECT_EQ(error.seen, "\"two\"");
  EXPECT_EQ(error.position.line, line);
  EXPECT_EQ(text_from(error, 5), "\"two\"");
}

TEST(PlanRefusal, JudgesThePlacementOfARunnerUpAsThePlans) {
  const Diagnostics none = errors_after(
      [](ordered_json& plan) { plan["runners_up"][0]["placement"]["stages"] = ordered_json::array(); });
  ASSERT_FALSE(none.empty());
  EXPECT_NE(none.render().find("runners_up/0/placement/"), std::string::npos) << none.render();
  const Diagnostics wide = errors_after(
      [](ordered_json& plan) { plan["runners_up"][0]["placement"]["stages"][0]["mesh"]["tensor"] = 3; });
  EXPECT_NE(wide.render().find("runners_up/0/placement/stages/0/devices"), std::string::npos)
      << wide.render();
}

TEST(PlanRefusal, ACountIsADecimalIntegerAndAWrongOneIsNotRepeatedAtLength) {
  for (const char digit : {'(', '1'})
    EXPECT_EQ(error_after([&](ordered_json& plan) {
                plan["certificate"]["space_candidates"] = std::string(100'000, digit);
              }),
              "\"" + std::string(40, digit) + "…\" is not a decimal integer");
}

TEST(PlanRefusal, RefusesAKeyThatStandsTwice) {
  std::string text = write_plan(sample_plan());
  const std::size_t at = text.find("\"tensor\": 2");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "\"tensor\": 1, ");
  const Result<Plan> read = read_plan_text(text, "plan.json");
  ASSERT_EQ(read.diagnostics.entries().size(), 1U) << read.diagnostics.render();
  EXPECT_EQ(read.diagnostics.entries().front().message, "the key \"tensor\" stands twice in one object");
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  EXPECT_EQ(read.diagnostics.entries().front().position.line, line);
}

TEST(PlanRefusal, RefusesANameThatLeavesTheRunsFolder) {
  EXPECT_NE(
      error_after([](ordered_json& d) { d["inputs"]["name"] = "../escaped"; }).find("cannot name a folder"),
      std::string::npos);
}

TEST(PlanRefusal, NamesThePlaceInsideTheTextOfASchedule) {
  const Diagnostics diagnostics =
      errors_after([](ordered_json& d) { d["schedule"]["replicas"][0]["rank_actions"][1] = "(F0 B0)x3 Q3"; });
  ASSERT_EQ(diagnostics.entries().size(), 1U) << diagnostics.render();
  const Diagnostic& error = diagnostics.entries().front();
  EXPECT_EQ(error.message, "pipeline rank 1: not an action");
  EXPECT_EQ(text_from(error, 2), "Q3");
}

TEST(PlanRefusal, NamesContradictionsWithTheirEquation) {
  EXPECT_EQ(error_after([](ordered_json& d) { d["world_size"] = 8; }),
            "world_size 8, but the placement uses 16 ranks");
  EXPECT_EQ(error_after([](ordered_json& d) { d["idle_devices"] = 3; }),
            "idle_devices 3, but the cluster's 16 devices − 16 ranks = 0");
  EXPECT_EQ(error_after([](ordered_json& d) { d["schedule"]["generator"] = "gpipe"; }),
            "generator gpipe, but the placement's schedule is 1f1b");
  EXPECT_EQ(error_after([](ordered_json& d) { d["schedule"]["generator_version"] = 9; }),
            "version 9 of generator 1f1b, this program has version 1");
  EXPECT_EQ(error_after([](ordered_json& d) {
              d["schedule"]["replicas"][0]["rank_actions"] = {"F0 (F1 B0)x6 B6 F7 B7", "(F0 B0)x8"};
            }),
            "not what generator 1f1b version 1 makes");
  EXPECT_EQ(error_after([](ordered_json& d) {
              d["schedule"]["replicas"][0]["rank_actions"] = {"F0 (F1 B0)x7", "(F0 B0)x8"};
            }),
            "pipeline rank 0: the list ends without the backward of stage 0, micro-batch 7");
  EXPECT_EQ(error_after([](ordered_json& d) { d["ranks"]["ranges"][0]["ranks"] = 15; }),
            "ranks: rank 15 has no device");
  EXPECT_EQ(error_after([](ordered_json& d) { d["prediction"]["memory"][0]["pipeline_rank"] = 2; }),
            "pipeline rank 2, the last is 1");
  EXPECT_EQ(error_after([](ordered_json& d) { d["certificate"]["space_candidates"] = "many"; }),
            "\"many\" is not a decimal integer");
}

TEST(PlanRefusal, JudgesThePlacementByItsOwnRules) {
  const Diagnostics diagnostics = errors_after([](ordered_json& d) { d["placement"]["accumulation"] = 7; });
  ASSERT_EQ(diagnostics.entries().size(), 1U) << diagnostics.render();
  EXPECT_EQ(
      diagnostics.entries().front().message,
      "placement/stages/0/mesh/data: micro_batch 2 × accumulation 7 × data 4 = 56, must be global_batch "
      "64 (stages 0, 1)");
}

TEST(PlanRefusal, SaysWhichInputsWereChanged) {
  EXPECT_EQ(error_after([](ordered_json& d) { d["inputs"]["training"]["seed"] = 5; }),
            "the inputs were changed after the plan was made: training");
  EXPECT_EQ(error_after([](ordered_json& d) {
              d["inputs"]["training"]["steps"] = 5;
              d["inputs"]["cluster"]["failures_per_node_hour"] = 0.5;
            }),
            "the inputs were changed after the plan was made: cluster, training");
}

TEST(PlanRefusal, JudgesTheVersionBeforeAnythingElse) {
  EXPECT_EQ(error_after([](ordered_json& d) {
              d["format_version"] = 2;
              d["a_key_of_version_2"] = true;
            }),
            "/format_version: this program reads version 1");
  EXPECT_EQ(error_after([](ordered_json& d) { d["format_version"] = "1"; }),
            "/format_version: this program reads version 1");
  EXPECT_EQ(error_after([](ordered_json& d) { d.erase("format_version"); }),
            "not a plan: there is no format_version");
  EXPECT_EQ(error_after([](ordered_json& d) {
              d = ordered_json::array({1, 2});
            }),
            "not a plan: there is no format_version");
}

using Pointer = ordered_json::json_pointer;

/// Calls `visit` with a pointer to every value of the document; of long lists the first two.
void for_each_place(const ordered_json& value, const Pointer& pointer,
                    const std::function<void(const Pointer&, const ordered_json&)>& visit) {
  visit(pointer, value);
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) for_each_place(inner, pointer / key, visit);
  if (value.is_array())
    for (std::size_t index = 0; index < std::min<std::size_t>(value.size(), 2); ++index)
      for_each_place(value[index], pointer / index, visit);
}

ordered_json nonsense_for(const ordered_json& value) {
  if (value.is_string()) return 42;
  if (value.is_boolean()) return "perhaps";
  if (value.is_number()) return "nonsense";
  if (value.is_array()) return ordered_json::object();
  return ordered_json::array();
}

TEST(PlanRefusal, GivesOneClearMessageForEachValueChangedToNonsense) {
  const ordered_json sample = sample_document();
  std::size_t places = 0;
  for_each_place(sample, Pointer(), [&](const Pointer& pointer, const ordered_json& value) {
    if (pointer.empty() || pointer.to_string() == "/format_version") return;
    ++places;
    ordered_json edited = sample;
    edited[pointer] = nonsense_for(value);
    const Result<Plan> read = read_plan_text(edited.dump(1), "plan.json");
    ASSERT_EQ(read.diagnostics.entries().size(), 1U) << pointer.to_string() << read.diagnostics.render();
    const Diagnostic& error = read.diagnostics.entries().front();
    EXPECT_EQ(error.message, pointer.to_string() + ": wrong type");
    EXPECT_FALSE(error.expected.empty()) << pointer.to_string();
    EXPECT_GT(error.position.line, 1) << pointer.to_string();
  });
  EXPECT_GT(places, 300U);
}

TEST(PlanRefusal, NumbersOutOfRange) {
  const ordered_json sample = sample_document();
  for_each_place(sample, Pointer(), [&](const Pointer& pointer, const ordered_json& value) {
    // The steps of folded stages may be negative.
    if (!value.is_number() || pointer.parent_pointer().to_string().ends_with("/step")) return;
    for (const ordered_json& wrong : {ordered_json(-5), ordered_json(18446744073709551615ULL)}) {
      if (value.is_number_float() && wrong.is_number_unsigned()) continue;
      ordered_json edited = sample;
      edited[pointer] = wrong;
      const Result<Plan> read = read_plan_text(edited.dump(1), "plan.json");
      ASSERT_FALSE(read.ok()) << pointer.to_string() << " = " << wrong;
    }
  });
}

TEST(PlanRefusal, UnknownKeysEverywhereWithTheNearestKnownOne) {
  const ordered_json sample = sample_document();
  for_each_place(sample, Pointer(), [&](const Pointer& pointer, const ordered_json& value) {
    if (!value.is_object() || pointer.to_string().ends_with("/efficiency")) return;
    ordered_json edited = sample;
    edited[pointer]["surprise"] = 1;
    const Result<Plan> read = read_plan_text(edited.dump(1), "plan.json");
    ASSERT_EQ(read.diagnostics.entries().size(), 1U) << pointer.to_string() << read.diagnostics.render();
    const std::string place = pointer.empty() ? "/" : pointer.to_string();
    EXPECT_EQ(read.diagnostics.entries().front().message, place + ": unknown key \"surprise\"");
  });
  const Diagnostics diagnostics = errors_after([](ordered_json& d) { d["placement"]["micro_batches"] = 1; });
  EXPECT_EQ(diagnostics.entries().at(0).remedy, "did you mean \"micro_batch\"?");
}

TEST(PlanRefusal, MissingKeys) {
  for (const char* pointer :
       {"/placement", "/placement/stages/0/mesh/tensor", "/prediction/time/0/term", "/inputs/model/layers",
        "/inputs/cluster/network", "/certificate/gap_fraction"}) {
    const Pointer place(pointer);
    EXPECT_EQ(error_after([&](ordered_json& d) { d[place.parent_pointer()].erase(place.back()); }),
              (place.parent_pointer().empty() ? "/" : place.parent_pointer().to_string()) + ": the key \"" +
                  place.back() + "\" is missing");
  }
}

TEST(PlanRefusal, ReportsAllErrorsTogether) {
  const Diagnostics diagnostics = errors_after([](ordered_json& d) {
    d["world_size"] = "many";
    d["placement"]["micro_batch"] = 0;
    d["placement"]["colour"] = "blue";
    d["placement"]["stages"][0]["mesh"]["order"] = "tp-tp";
    d["inputs"]["training"]["precision"] = "fp128";
  });
  EXPECT_EQ(diagnostics.entries().size(), 5U) << diagnostics.render();
}

TEST(PlanRefusal, TextThatEndsAnywhere) {
  const std::string text = write_plan(sample_plan());
  for (std::size_t length = 0; length + 2 < text.size(); length += 97) {
    const Result<Plan> read = read_plan_text(std::string_view(text).substr(0, length), "plan.json");
    ASSERT_FALSE(read.ok());
    ASSERT_EQ(read.diagnostics.entries().size(), 1U) << length;
    EXPECT_NE(read.diagnostics.entries().front().message.find("not JSON"), std::string::npos) << length;
  }
}

TEST(PlanRefusal, SurvivesTextThatIsHostile) {
  for (const std::string& text :
       {std::string(100000, '['), std::string("\xff\xfe\x00garbage", 10),
        std::string("{\"format_version\":1e400}"),
        "{\"format_version\":1,\"placement\":" + std::string(5000, '[') + std::string(5000, ']') + "}",
        std::string("null"), std::string("{\"format_version\":1}"), "\"" + std::string(1000000, 'x')})
    EXPECT_FALSE(read_plan_text(text, "plan.json").ok());
  const Result<Plan> overflow = read_plan_text("{\n\"objective\": 1e400}", "plan.json");
  ASSERT_EQ(overflow.diagnostics.entries().size(), 1U);
  EXPECT_EQ(overflow.diagnostics.entries().front().position, (SourcePosition{"plan.json", 2, 14}));
  const Diagnostics huge = errors_after([](ordered_json& d) {
    d["placement"]["stages"][0]["count"] = 1048576;
    d["placement"]["stages"][1]["count"] = 1048576;
  });
  EXPECT_TRUE(huge.has_errors());
}

TEST(PlanRefusal, TellsTheFirstOfThousandsOfErrorsAndHowManyThereAreBeside) {
  const Diagnostics many = errors_after([](ordered_json& d) {
    d["runners_up"] = ordered_json::array();
    d["advice"] = ordered_json::array();
    for (int i = 0; i < 20000; ++i) d["advice"].push_back(i);
  });
  ASSERT_EQ(many.entries().size(), 51U);
  EXPECT_NE(many.entries().front().message.find("/advice/0"), std::string::npos)
      << many.entries().front().message;
  EXPECT_EQ(many.entries().back().message, "and 19950 more errors of this file");
}

TEST(PlanRefusal, NamesAFileThatIsNotThere) {
  const Result<Plan> read = read_plan("no/such/plan.json");
  ASSERT_EQ(read.diagnostics.entries().size(), 1U);
  EXPECT_EQ(read.diagnostics.entries().front().position.file, "no/such/plan.json");
}

}  // namespace
}  // namespace specs
