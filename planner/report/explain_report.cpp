#include "planner/report/explain_report.h"

#include <fmt/format.h>

#include "planner/report/cost_tables.h"
#include "planner/report/plan_report.h"

namespace planner {
namespace {

Table sensitivity_table(const std::vector<SensitivityEntry>& entries) {
  Table table{"sensitivity", "What would help most", {}, {}, false};
  table.columns = {{"change", "change"},
                   {"step_seconds", "step", Quantity::seconds},
                   {"saving", "saves", Quantity::fraction}};
  for (const SensitivityEntry& entry : entries)
    table.rows.push_back({entry.change, entry.step_seconds, entry.saving});
  return table;
}

/// The resource of the machine of which a little more helps most.
Facts critical_resource(const std::vector<SensitivityEntry>& entries) {
  Facts facts{"critical", "Critical resource", {}};
  for (const SensitivityEntry& entry : entries)
    if (!entry.resource.empty()) {
      facts.facts.push_back(
          {"resource", "resource", Quantity::text, entry.resource,
           fmt::format("(10 % more of it saves {} of the step)", format_fraction(entry.saving))});
      break;
    }
  return facts;
}

}  // namespace

Report explain_report(const specs::Plan& plan, const std::vector<SensitivityEntry>& sensitivity,
                      std::int64_t usable_device_bytes) {
  const std::int64_t layers = specs::block_count(plan.inputs.model);
  Report report;
  report.sections.push_back(plan_summary(plan, usable_device_bytes));
  report.sections.push_back(detailed_time_table(plan.prediction));
  report.sections.push_back(rank_time_table(plan.prediction, plan.placement, layers));
  report.sections.push_back(sensitivity_table(sensitivity));
  report.sections.push_back(critical_resource(sensitivity));
  report.sections.push_back(memory_table(plan.prediction, usable_device_bytes));
  report.sections.push_back(off_device_table(plan.prediction));
  report.sections.push_back(
      pipeline_rank_table(plan.prediction, plan.placement, layers, usable_device_bytes));
  return report;
}

}  // namespace planner
