#include "planner/report/sweep_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/report/layout_words.h"

namespace planner {
namespace {

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }
std::string value_of(const std::string& setting) { return setting.substr(setting.find('=') + 1); }

const std::vector<Column>& result_columns(bool whole_run) {
  static const std::vector<Column> of_a_step{{"devices", "devices", Quantity::count},
                                             {"step_seconds", "step", Quantity::seconds},
                                             {"tokens_per_second", "throughput", Quantity::tokens_per_second},
                                             {"model_flops_utilization", "MFU", Quantity::fraction},
                                             {"cost_per_step_dollars", "a step", Quantity::dollars},
                                             {"peak_device_bytes", "memory", Quantity::bytes},
                                             {"pareto", "*"},
                                             {"placement", "placement"}};
  static const std::vector<Column> of_a_run{{"devices", "devices", Quantity::count},
                                            {"step_seconds", "step", Quantity::seconds},
                                            {"model_flops_utilization", "MFU", Quantity::fraction},
                                            {"peak_device_bytes", "memory", Quantity::bytes},
                                            {"run_seconds", "run", Quantity::seconds},
                                            {"run_device_hours", "device-hours", Quantity::count},
                                            {"run_cost_dollars", "cost", Quantity::dollars},
                                            {"run_energy_joules", "energy", Quantity::joules},
                                            {"pareto", "*"},
                                            {"placement", "placement"}};
  return whole_run ? of_a_run : of_a_step;
}

void add_planned(const specs::Plan& plan, bool on_front, bool whole_run, std::vector<Cell>& row) {
  const specs::CostBreakdown& cost = plan.prediction;
  const auto unless_zero = [](double value) { return value == 0 ? Cell() : Cell(value); };
  row.insert(row.end(), {plan.world_size, cost.step_seconds});
  if (whole_run)
    row.insert(row.end(),
               {cost.model_flops_utilization, cost.peak_device_bytes, cost.run_seconds, cost.run_device_hours,
                unless_zero(cost.run_cost_dollars), unless_zero(cost.run_energy_joules)});
  else
    row.insert(row.end(), {cost.tokens_per_second, cost.model_flops_utilization,
                           unless_zero(cost.cost_per_step_dollars), cost.peak_device_bytes});
  row.insert(row.end(), {std::string(on_front ? "*" : ""),
                         mesh_words(plan.placement) + ", " + schedule_words(plan.placement)});
}

std::string why_no_plan(const SweepOutcome& outcome) {
  if (outcome.diagnostics.has_errors()) return outcome.diagnostics.entries().front().message;
  if (!outcome.outcome) return "not planned: stopped";
  const std::vector<std::string>& reasons = outcome.outcome->infeasibility->reasons;
  return "nothing fits: " + (reasons.empty() ? std::string() : reasons.front());
}

std::string words_of(const std::vector<std::string>& settings) {
  return fmt::format("{}", fmt::join(settings, ", "));
}

/// "How many devices for N days."
Facts answer_within(const std::vector<SweepOutcome>& outcomes, double days) {
  Facts facts{"within_days", fmt::format("Fewest devices that finish within {:g} days", days), {}};
  const auto point = fewest_devices_within(outcomes, days * 86400);
  if (!point) {
    facts.facts.push_back(
        {"answer", "answer", Quantity::text, std::string("no point of this sweep does"), {}});
    return facts;
  }
  const specs::Plan& plan = *plan_of(outcomes[*point]);
  facts.facts = {
      {"devices", "devices", Quantity::count, plan.world_size, words_of(outcomes[*point].settings)},
      {"run_seconds", "whole run", Quantity::seconds, plan.prediction.run_seconds, {}},
      {"run_device_hours", "device-hours", Quantity::count, plan.prediction.run_device_hours, {}},
      {"run_cost_dollars", "cost", Quantity::dollars, plan.prediction.run_cost_dollars, {}},
      {"run_energy_joules", "energy", Quantity::joules, plan.prediction.run_energy_joules, {}}};
  return facts;
}

}  // namespace

Report sweep_report(const std::vector<SweepOutcome>& outcomes, const SweepReportOptions& options) {
  Report report;
  Table table{"points",
              fmt::format("Sweep of {}: {} points, * on the Pareto front of time, cost and memory",
                          options.name, outcomes.size()),
              {},
              {},
              false};
  if (!outcomes.empty())
    for (const std::string& setting : outcomes.front().settings)
      table.columns.push_back({key_of(setting), key_of(setting)});
  const bool whole_run = std::any_of(outcomes.begin(), outcomes.end(), [](const SweepOutcome& outcome) {
    const specs::Plan* plan = plan_of(outcome);
    return plan != nullptr && plan->prediction.run_seconds > 0;
  });
  const std::vector<Column>& results = result_columns(whole_run);
  table.columns.insert(table.columns.end(), results.begin(), results.end());
  const std::vector<bool> front = pareto_front(outcomes);
  for (std::size_t point = 0; point < outcomes.size(); ++point) {
    const SweepOutcome& outcome = outcomes[point];
    std::vector<Cell> row;
    for (const std::string& setting : outcome.settings) row.emplace_back(value_of(setting));
    if (const specs::Plan* plan = plan_of(outcome)) {
      add_planned(*plan, front[point], whole_run, row);
    } else {
      row.resize(table.columns.size() - 1);
      row.emplace_back(why_no_plan(outcome));
    }
    table.rows.push_back(std::move(row));
  }
  report.sections.push_back(std::move(table));
  if (options.within_days) report.sections.push_back(answer_within(outcomes, *options.within_days));

  Notes written{"files", "Plans", {}};
  for (const std::string& file : options.files)
    if (!file.empty()) written.lines.push_back(file);
  report.sections.push_back(std::move(written));
  return report;
}

}  // namespace planner
