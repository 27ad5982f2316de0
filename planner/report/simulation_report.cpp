#include "planner/report/simulation_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "planner/report/layout_words.h"
#include "planner/simulate/rank_usage.h"

namespace planner {
namespace {

Facts summary(const specs::Plan& plan, const StepSimulation& step) {
  const double predicted = plan.prediction.step_seconds;
  const std::int64_t copies = plan.world_size / plan.placement.pipeline_ranks();
  Facts facts{"simulation", fmt::format("Simulation of {}", plan.inputs.name), {}};
  facts.facts = {{"mesh", "mesh", Quantity::text, mesh_words(plan.placement), {}},
                 {"schedule", "schedule", Quantity::text, schedule_words(plan.placement), {}},
                 {"simulated_step_seconds", "simulated step", Quantity::seconds, step.seconds(), {}},
                 {"predicted_step_seconds", "predicted step", Quantity::seconds, predicted, {}},
                 {"difference", "difference", Quantity::signed_fraction, step.seconds() / predicted - 1, {}},
                 {"tasks", "tasks", Quantity::count, static_cast<std::int64_t>(step.pipeline.tasks.size()),
                  fmt::format("on {} pipeline ranks, each for {} devices that do the same",
                              step.schedule.pipeline_ranks, format_count(copies))}};
  return facts;
}

struct KindShare {
  double seconds = 0;
  std::map<std::int32_t, double> by_rank;
};

/// What the step's length is due to, by kind of action: the seconds on the critical path.
Table critical_path_table(const StepSimulation& step) {
  Table table{"critical_path", "Critical path of the step", {}, {}, true};
  table.columns = {{"action", "action"},
                   {"seconds", "seconds", Quantity::seconds},
                   {"share", "share", Quantity::fraction},
                   {"pipeline_ranks", "pipeline ranks", Quantity::count},
                   {"longest_on_rank", "longest on", Quantity::count}};
  std::map<std::string_view, KindShare> kinds;
  for (const CriticalShare& share : critical_shares(step.pipeline)) {
    KindShare& kind = kinds[action_words(share.kind)];
    kind.seconds += share.seconds;
    kind.by_rank[share.rank] += share.seconds;
  }
  std::vector<std::pair<std::string_view, KindShare>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  for (const auto& [action, kind] : sorted) {
    const auto longest = std::max_element(kind.by_rank.begin(), kind.by_rank.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    table.rows.push_back({std::string(action), kind.seconds, kind.seconds / step.seconds(),
                          static_cast<std::int64_t>(kind.by_rank.size()),
                          static_cast<std::int64_t>(longest->first)});
  }
  if (step.update_seconds > 0)
    table.rows.push_back({std::string("update, parameter gather and fixed costs"), step.update_seconds,
                          step.update_seconds / step.seconds(),
                          static_cast<std::int64_t>(step.schedule.pipeline_ranks), Cell()});
  table.rows.push_back({std::string("step"), step.seconds(), 1.0, Cell(), Cell()});
  return table;
}

}  // namespace

Table rank_usage_table(const specs::Plan& plan, const StepSimulation& step) {
  Table table{"pipeline_ranks", "Step of each pipeline rank", {}, {}, false};
  table.columns = {{"pipeline_rank", "rank", Quantity::count},
                   {"busy_seconds", "busy", Quantity::seconds},
                   {"busy_share", "of the step", Quantity::fraction},
                   {"idle_seconds", "idle", Quantity::seconds},
                   {"waiting_seconds", "of it in the pipeline", Quantity::seconds},
                   {"units", "units"}};
  const std::int64_t layers = specs::block_count(plan.inputs.model);
  for (const RankUsage& usage : rank_usage(step))
    table.rows.push_back({static_cast<std::int64_t>(usage.rank), usage.busy_seconds,
                          usage.busy_seconds / step.seconds(), usage.idle_seconds, usage.waiting_seconds,
                          rank_unit_words(plan.placement, usage.rank, layers)});
  return table;
}

Report simulation_report(const specs::Plan& plan, const StepSimulation& step) {
  return {{summary(plan, step), rank_usage_table(plan, step), critical_path_table(step)}};
}

}  // namespace planner
