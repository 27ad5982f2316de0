#include "planner/report/sweep_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/report/layout_words.h"

namespace planner {
namespace {

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }
std::string value_of(const std::string& setting) { return setting.substr(setting.find('=') + 1); }

void add_planned(const specs::Plan& plan, bool on_front, std::vector<Cell>& row) {
  const specs::CostBreakdown& cost = plan.prediction;
  const auto unless_zero = [](double value) { return value == 0 ? Cell() : Cell(value); };
  row.insert(row.end(), {cost.step_seconds, cost.tokens_per_second, cost.model_flops_utilization,
                         unless_zero(cost.cost_per_step_dollars), cost.peak_device_bytes,
                         unless_zero(cost.run_seconds), std::string(on_front ? "*" : ""),
                         mesh_words(plan.placement) + ", " + schedule_words(plan.placement)});
}

std::string why_no_plan(const SweepOutcome& outcome) {
  if (outcome.diagnostics.has_errors()) return outcome.diagnostics.entries().front().message;
  if (!outcome.outcome) return "not planned: stopped";
  const std::vector<std::string>& reasons = outcome.outcome->infeasibility->reasons;
  return "nothing fits: " + (reasons.empty() ? std::string() : reasons.front());
}

}  // namespace

Report sweep_report(const std::string& name, const std::vector<SweepOutcome>& outcomes,
                    const std::vector<std::string>& files) {
  Report report;
  Table table{"points",
              fmt::format("Sweep of {}: {} points, * on the Pareto front of time, cost and memory", name,
                          outcomes.size()),
              {},
              {},
              false};
  if (!outcomes.empty())
    for (const std::string& setting : outcomes.front().settings)
      table.columns.push_back({key_of(setting), key_of(setting)});
  const std::vector<Column> results{{"step_seconds", "step", Quantity::seconds},
                                    {"tokens_per_second", "throughput", Quantity::tokens_per_second},
                                    {"model_flops_utilization", "MFU", Quantity::fraction},
                                    {"cost_per_step_dollars", "a step", Quantity::dollars},
                                    {"peak_device_bytes", "memory", Quantity::bytes},
                                    {"run_seconds", "run", Quantity::seconds},
                                    {"pareto", "*"},
                                    {"placement", "placement"}};
  table.columns.insert(table.columns.end(), results.begin(), results.end());
  const std::vector<bool> front = pareto_front(outcomes);
  for (std::size_t point = 0; point < outcomes.size(); ++point) {
    const SweepOutcome& outcome = outcomes[point];
    std::vector<Cell> row;
    for (const std::string& setting : outcome.settings) row.emplace_back(value_of(setting));
    if (outcome.outcome && outcome.outcome->plan) {
      add_planned(*outcome.outcome->plan, front[point], row);
    } else {
      row.resize(table.columns.size() - 1);
      row.emplace_back(why_no_plan(outcome));
    }
    table.rows.push_back(std::move(row));
  }
  report.sections.push_back(std::move(table));

  Notes written{"files", "Plans", {}};
  for (const std::string& file : files)
    if (!file.empty()) written.lines.push_back(file);
  report.sections.push_back(std::move(written));
  return report;
}

}  // namespace planner
