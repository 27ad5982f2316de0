#include "planner/report/what_if_report.h"

#include <array>

#include <fmt/format.h>

#include "planner/report/comparison_report.h"
#include "planner/report/layout_words.h"

namespace planner {
namespace {

/// Base, the same placement, planned anew; null where there is none.
using Variants = std::array<const specs::Plan*, 3>;

Table variants_table(const Variants& variants) {
  Table table{"variants", "", {}, {}, false};
  table.columns = {{"measure", "measure"},
                   {"base", "base"},
                   {"unchanged", "same placement"},
                   {"replanned", "planned anew"}};
  const auto add = [&](std::string measure, auto&& words_of) {
    std::vector<Cell> row{std::move(measure)};
    bool any = false;
    for (const specs::Plan* plan : variants) {
      const std::string words = plan != nullptr ? words_of(*plan) : std::string();
      any = any || !words.empty();
      row.emplace_back(words);
    }
    if (any) table.rows.push_back(std::move(row));
  };
  const auto add_quantity = [&](std::string measure, Quantity quantity, auto&& value_of) {
    add(std::move(measure), [&](const specs::Plan& plan) {
      const auto value = static_cast<double>(value_of(plan.prediction));
      return value == 0 ? std::string() : format_quantity(quantity, value);
    });
  };
  using specs::CostBreakdown;
  add("mesh", [](const specs::Plan& plan) { return mesh_words(plan.placement); });
  add("schedule", [](const specs::Plan& plan) { return schedule_words(plan.placement); });
  add("memory savers", [](const specs::Plan& plan) { return memory_saving_words(plan.placement); });
  add_quantity("step time", Quantity::seconds, [](const CostBreakdown& cost) { return cost.step_seconds; });
  add("against the base", [&](const specs::Plan& plan) {
    if (variants[0] == nullptr || &plan == variants[0]) return std::string();
    return format_signed_fraction(plan.prediction.step_seconds / variants[0]->prediction.step_seconds - 1);
  });
  add_quantity("throughput", Quantity::tokens_per_second,
               [](const CostBreakdown& cost) { return cost.tokens_per_second; });
  add_quantity("MFU", Quantity::fraction,
               [](const CostBreakdown& cost) { return cost.model_flops_utilization; });
  add_quantity("device memory", Quantity::bytes,
               [](const CostBreakdown& cost) { return cost.peak_device_bytes; });
  add_quantity("host memory a node", Quantity::bytes,
               [](const CostBreakdown& cost) { return cost.peak_host_bytes_per_node; });
  add_quantity("cost a step", Quantity::dollars,
               [](const CostBreakdown& cost) { return cost.cost_per_step_dollars; });
  add_quantity("whole run", Quantity::seconds, [](const CostBreakdown& cost) { return cost.run_seconds; });
  add_quantity("cost of the run", Quantity::dollars,
               [](const CostBreakdown& cost) { return cost.run_cost_dollars; });
  return table;
}

const specs::Plan* plan_of(const PlanOutcome& outcome) { return outcome.plan ? &*outcome.plan : nullptr; }

void add_infeasible(const PlanOutcome& outcome, const std::string& who, Notes& notes) {
  if (!outcome.infeasibility) return;
  for (const std::string& reason : outcome.infeasibility->reasons)
    notes.lines.push_back(fmt::format("{}: nothing fits: {}", who, reason));
}

}  // namespace

Report what_if_report(const WhatIf& answer, const std::string& change) {
  Report report;
  const specs::Plan* base = plan_of(answer.base);
  const specs::Plan* replanned = plan_of(answer.replanned);
  Table table = variants_table({base, answer.unchanged ? &answer.unchanged->plan : nullptr, replanned});
  table.title = "What if " + change;
  report.sections.push_back(std::move(table));

  Notes notes{"notes", "Notes", {}};
  add_infeasible(answer.base, "base", notes);
  if (answer.unchanged && !answer.unchanged->memory_shortfall.empty())
    notes.lines.push_back("same placement: does not fit: " + answer.unchanged->memory_shortfall);
  for (const std::string& refusal : answer.unchanged_refusals)
    notes.lines.push_back("same placement: " + refusal);
  add_infeasible(answer.replanned, "planned anew", notes);
  report.sections.push_back(std::move(notes));

  if (base == nullptr || replanned == nullptr) return report;
  const ComparisonNames names{"base", "planned anew"};
  report.sections.push_back(time_comparison(base->prediction, replanned->prediction, names));
  report.sections.push_back(memory_comparison(base->prediction, replanned->prediction, names));
  return report;
}

}  // namespace planner
