#include "planner/report/what_if_report.h"

#include <array>

#include <fmt/format.h>

#include "cost_models/parameters.h"
#include "planner/cost_difference.h"
#include "planner/report/comparison_report.h"
#include "planner/report/layout_words.h"

namespace planner {
namespace {

/// Base, the same placement, planned anew; null where there is none.
using Variants = std::array<const specs::Plan*, 3>;

/// Sizes and work of the model, where the change is of the model.
template <class Add>
void add_model_rows(const Variants& variants, const Add& add) {
  const specs::Plan* base = variants[0];
  const specs::Plan* changed = variants[2] != nullptr ? variants[2] : variants[1];
  if (base == nullptr || changed == nullptr || base->inputs.model == changed->inputs.model) return;
  add("parameters", [](const specs::Plan& plan) {
    return format_parameters(static_cast<double>(cost_models::total_parameters(plan.inputs.model)));
  });
  add("parameters a token uses", [](const specs::Plan& plan) {
    return format_parameters(static_cast<double>(cost_models::active_parameters(plan.inputs.model)));
  });
  add("compute a token", [](const specs::Plan& plan) {
    const specs::TrainingSpec& training = plan.inputs.training;
    return format_flops(
        plan.prediction.model_flops_per_step /
        (static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length)));
  });
}

/// Device memory by class on the fullest pipeline rank of each variant.
Table memory_variants_table(const Variants& variants) {
  Table table{"memory", "Memory of the fullest device", {}, {}, true};
  table.columns = {{"class", "class"},
                   {"base_bytes", "base", Quantity::bytes},
                   {"unchanged_bytes", "same placement", Quantity::bytes},
                   {"replanned_bytes", "planned anew", Quantity::bytes}};
  for (const auto& [memory_class, name] : specs::EnumNames<specs::MemoryClass>::names) {
    std::vector<Cell> row{spoken_name(memory_class)};
    bool any = false;
    for (const specs::Plan* plan : variants) {
      if (plan == nullptr) {
        row.emplace_back();
        continue;
      }
      const std::int64_t bytes =
          device_bytes(plan->prediction, fullest_pipeline_rank(plan->prediction), memory_class);
      any = any || bytes != 0;
      row.emplace_back(bytes);
    }
    if (any) table.rows.push_back(std::move(row));
  }
  std::vector<Cell> total{std::string("all")};
  for (const specs::Plan* plan : variants)
    total.emplace_back(plan != nullptr ? Cell(plan->prediction.peak_device_bytes) : Cell());
  table.rows.push_back(std::move(total));
  return table;
}

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
  add_model_rows(variants, add);
  add_quantity("step time", Quantity::seconds, [](const CostBreakdown& cost) { return cost.step_seconds; });
  add("against the base", [&](const specs::Plan& plan) {
    if (variants[0] == nullptr || &plan == variants[0]) return std::string();
    return format_signed_fraction(plan.prediction.step_seconds / variants[0]->prediction.step_seconds - 1);
  });
  add_quantity("throughput", Quantity::tokens_per_second,
               [](const CostBreakdown& cost) { return cost.tokens_per_second; });
  add_quantity("MFU", Quantity::fraction,
               [](const CostBreakdown& cost) { return cost.model_flops_utilization; });
  add_quantity("expert all-to-all", Quantity::seconds, [](const CostBreakdown& cost) {
    return cost.exposed_seconds(specs::TimeTerm::expert_communication);
  });
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
  const Variants variants{base, answer.unchanged ? &answer.unchanged->plan : nullptr, replanned};
  Table table = variants_table(variants);
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
  if (base != nullptr) report.sections.push_back(memory_variants_table(variants));

  if (base == nullptr || replanned == nullptr) return report;
  const ComparisonNames names{"base", "planned anew"};
  report.sections.push_back(time_comparison(base->prediction, replanned->prediction, names));
  return report;
}

}  // namespace planner
