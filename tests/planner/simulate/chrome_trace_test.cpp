// The trace as a viewer reads it: fields by phase, tracks without overlap, flows that join the right slices.
#include "planner/simulate/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/simulate/rank_usage.h"
#include "specs/schedule/generate.h"
#include "specs/schedule/lowering.h"

namespace planner {
namespace {

using nlohmann::json;
using specs::ScheduleKind;

struct TraceCase {
  ScheduleKind kind;
  std::int32_t ranks;
  std::int32_t virtual_stages;
  std::int32_t micro_batches;
  specs::LoweringOptions options = {};
};

std::ostream& operator<<(std::ostream& out, const TraceCase& c) {
  return out << name_of(c.kind) << " p " << c.ranks << " v " << c.virtual_stages << " m " << c.micro_batches;
}

StepSimulation step_of(const TraceCase& c) {
  StepSimulation step;
  step.schedule =
      specs::lower(specs::generate_schedule(c.kind, c.ranks, c.virtual_stages, c.micro_batches), c.options);
  ScheduleDurations seconds;
  for (std::int32_t stage = 0; stage < step.schedule.stages(); ++stage)
    seconds.stages.push_back({0.001 * (stage + 1), 0.001, 0.002, 0.0005, 0.004});
  seconds.activation_transfer.assign(seconds.stages.size() - 1, 0.0003);
  seconds.gradient_transfer.assign(seconds.stages.size() - 1, 0.0004);
  step.pipeline = simulate(step.schedule, seconds);
  step.update_seconds = 0.01;
  return step;
}

json trace_of(const StepSimulation& step) {
  TraceNames names{"a \"title\"", {}};
  for (std::int32_t rank = 0; rank < step.schedule.pipeline_ranks; ++rank)
    names.rank_names.push_back("pipeline rank " + std::to_string(rank));
  return json::parse(chrome_trace(step, names));
}

using Track = std::pair<std::int64_t, std::int64_t>;
Track track_of(const json& event) { return {event.at("pid"), event.at("tid")}; }

class EveryTrace : public ::testing::TestWithParam<TraceCase> {};

TEST_P(EveryTrace, HasTheFieldsOfItsPhases) {
  const json trace = trace_of(step_of(GetParam()));
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
  EXPECT_EQ(trace.at("otherData").at("title"), "a \"title\"");
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    EXPECT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer()) << event;
    EXPECT_TRUE(event.at("name").is_string()) << event;
    if (phase == "M") {
      const std::set<std::string> known{"process_name", "process_sort_index", "thread_name",
                                        "thread_sort_index"};
      EXPECT_TRUE(known.contains(event.at("name"))) << event;
      EXPECT_TRUE(event.at("args").contains("name") || event.at("args").contains("sort_index")) << event;
      continue;
    }
    EXPECT_GE(event.at("ts").get<double>(), 0) << event;
    EXPECT_TRUE(event.at("cat").is_string()) << event;
    if (phase == "X")
      EXPECT_GT(event.at("dur").get<double>(), 0) << event;
    else
      EXPECT_TRUE(event.at("id").is_number_integer()) << event;
    EXPECT_EQ(event.value("bp", ""), phase == "f" ? "e" : "");
    EXPECT_TRUE((std::set<std::string>{"X", "s", "t", "f"}).contains(phase)) << event;
  }
}

TEST_P(EveryTrace, HasEveryTaskOnceOnANamedTrackWhereNothingOverlaps) {
  const StepSimulation step = step_of(GetParam());
  std::map<Track, std::vector<std::pair<double, double>>> slices;
  std::set<Track> named;
  double end = 0;
  const json trace = trace_of(step);
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name") named.insert(track_of(event));
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts"), duration = event.at("dur");
    slices[track_of(event)].emplace_back(start, start + duration);
    end = std::max(end, start + duration);
  }
  std::size_t count = 0;
  for (auto& [track, spans] : slices) {
    EXPECT_TRUE(named.contains(track));
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      EXPECT_LE(std::llround(1e3 * spans[i - 1].second), std::llround(1e3 * spans[i].first));
    count += spans.size();
  }
  const auto tasks =
      static_cast<std::size_t>(std::count_if(step.pipeline.tasks.begin(), step.pipeline.tasks.end(),
                                             [](const TimedTask& timed) { return timed.task.seconds > 0; }));
  EXPECT_EQ(count, tasks + static_cast<std::size_t>(step.schedule.pipeline_ranks));
  EXPECT_NEAR(end, 1e6 * step.seconds(), 0.01);
}

TEST_P(EveryTrace, LeadsAFlowFromTheMakerOfATensorOverItsTransferToItsUser) {
  const json trace = trace_of(step_of(GetParam()));
  std::map<std::tuple<Track, double>, json> slice_at;
  std::map<std::int64_t, std::map<std::string, json>> flows;
  std::size_t transfers = 0;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "X") {
      slice_at[{track_of(event), event.at("ts").get<double>()}] = event;
      transfers += event.at("name").get<std::string>().find("transfer") != std::string::npos ? 1 : 0;
    }
    if (phase == "s" || phase == "t" || phase == "f") flows[event.at("id")][phase] = event;
  }
  EXPECT_EQ(flows.size(), transfers);
  for (const auto& [id, ends] : flows) {
    ASSERT_EQ(ends.size(), 3u);
    // Perfetto joins the events of a flow by category, name and id, in the order of their times.
    for (const char* phase : {"t", "f"})
      EXPECT_TRUE(ends.at(phase).at("cat") == ends.at("s").at("cat") &&
                  ends.at(phase).at("name") == ends.at("s").at("name"));
    EXPECT_LE(ends.at("s").at("ts").get<double>(), ends.at("t").at("ts").get<double>());
    EXPECT_LE(ends.at("t").at("ts").get<double>(), ends.at("f").at("ts").get<double>());
    const auto slice = [&](const char* phase) {
      const json& event = ends.at(phase);
      return slice_at.at({track_of(event), event.at("ts").get<double>()});
    };
    const json maker = slice("s"), transfer = slice("t"), user = slice("f");
    EXPECT_EQ(maker.at("args").at("micro_batch"), user.at("args").at("micro_batch"));
    EXPECT_EQ(std::abs(maker.at("args").at("stage").get<int>() - user.at("args").at("stage").get<int>()), 1);
    EXPECT_NE(maker.at("pid"), user.at("pid"));
    const double made = maker.at("ts").get<double>() + maker.at("dur").get<double>();
    const double sent = transfer.at("ts"), arrived = sent + transfer.at("dur").get<double>();
    // The two actions of an overlapped pair make their tensors when both are done.
    EXPECT_LE(made, sent + 0.01);
    EXPECT_LE(arrived, user.at("ts").get<double>() + user.at("dur").get<double>() + 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, EveryTrace,
                         ::testing::Values(TraceCase{ScheduleKind::gpipe, 4, 1, 3},
                                           TraceCase{ScheduleKind::one_forward_one_backward, 4, 1, 8},
                                           TraceCase{ScheduleKind::one_forward_one_backward, 1, 1, 3},
                                           TraceCase{
                                               ScheduleKind::interleaved, 2, 3, 4, {.tied_embeddings = true}},
                                           TraceCase{ScheduleKind::zero_bubble_h1, 4, 1, 8},
                                           TraceCase{ScheduleKind::zero_bubble_v, 3, 2, 8},
                                           TraceCase{ScheduleKind::dual_pipe_v, 2, 2, 4},
                                           TraceCase{ScheduleKind::interleaved, 2, 2, 4, {.zero_stage = 3}}));

TEST(RankUsage, BusyAndIdleAddUpToTheStepAndTheBubbleIsTheTextbooks) {
  // Equal stages under 1F1B wait for p − 1 of their own times.
  StepSimulation step;
  step.schedule = specs::lower(specs::generate_schedule(ScheduleKind::one_forward_one_backward, 4, 1, 8));
  ScheduleDurations seconds;
  seconds.stages.assign(4, {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  seconds.activation_transfer = seconds.gradient_transfer = {0, 0, 0};
  step.pipeline = simulate(step.schedule, seconds);
  step.update_seconds = 2;
  step.waits_for_update_seconds = {0, 0, 0, 1};
  const std::vector<RankUsage> usage = rank_usage(step);
  ASSERT_EQ(usage.size(), 4u);
  for (const RankUsage& rank : usage) {
    EXPECT_DOUBLE_EQ(rank.busy_seconds, 8 * 3 + (rank.rank == 3 ? 1 : 2));
    EXPECT_DOUBLE_EQ(rank.waiting_seconds, 3 * 3);
    EXPECT_DOUBLE_EQ(rank.busy_seconds + rank.idle_seconds, step.seconds());
  }
}

}  // namespace
}  // namespace planner
