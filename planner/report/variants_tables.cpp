#include "planner/report/variants_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "cost_models/parameters.h"
#include "planner/plan/cost_difference.h"
#include "planner/report/layout_words.h"

namespace planner {
namespace {

using specs::CostBreakdown;
using specs::Plan;

struct Measure {
  std::string name;
  Quantity quantity = Quantity::text;
  std::function<double(const Plan&)> of;
};

Measure of_cost(std::string name, Quantity quantity, std::function<double(const CostBreakdown&)> of) {
  return {std::move(name), quantity, [of = std::move(of)](const Plan& plan) { return of(plan.prediction); }};
}

double tokens_per_step(const Plan& plan) {
  return static_cast<double>(plan.inputs.training.global_batch) *
         static_cast<double>(plan.inputs.training.sequence_length);
}

std::vector<Measure> measures() {
  return {
      {"parameters", Quantity::parameters,
       [](const Plan& plan) {
         return static_cast<double>(cost_models::total_parameters(plan.inputs.model));
       }},
      {"parameters a token uses", Quantity::parameters,
       [](const Plan& plan) {
         return static_cast<double>(cost_models::active_parameters(plan.inputs.model));
       }},
      {"compute a token", Quantity::flops,
       [](const Plan& plan) { return plan.prediction.model_flops_per_step / tokens_per_step(plan); }},
      of_cost("step time", Quantity::seconds, [](const CostBreakdown& cost) { return cost.step_seconds; }),
      of_cost("throughput", Quantity::tokens_per_second,
              [](const CostBreakdown& cost) { return cost.tokens_per_second; }),
      of_cost("MFU", Quantity::fraction,
              [](const CostBreakdown& cost) { return cost.model_flops_utilization; }),
      of_cost("device memory", Quantity::bytes,
              [](const CostBreakdown& cost) { return static_cast<double>(cost.peak_device_bytes); }),
      of_cost("host memory a node", Quantity::bytes,
              [](const CostBreakdown& cost) { return static_cast<double>(cost.peak_host_bytes_per_node); }),
      of_cost("checkpoint", Quantity::bytes,
              [](const CostBreakdown& cost) { return static_cast<double>(cost.checkpoint_bytes); }),
      of_cost("checkpoint write", Quantity::seconds,
              [](const CostBreakdown& cost) { return cost.checkpoint_seconds; }),
      of_cost("goodput", Quantity::fraction, [](const CostBreakdown& cost) { return cost.goodput_fraction; }),
      of_cost("cost a step", Quantity::dollars,
              [](const CostBreakdown& cost) { return cost.cost_per_step_dollars; }),
      of_cost("energy a step", Quantity::joules,
              [](const CostBreakdown& cost) { return cost.energy_per_step_joules; }),
      of_cost("whole run", Quantity::seconds, [](const CostBreakdown& cost) { return cost.run_seconds; }),
      of_cost("cost of the run", Quantity::dollars,
              [](const CostBreakdown& cost) { return cost.run_cost_dollars; }),
  };
}

/// Shown only where they differ: with one model and one storage they say nothing.
bool only_where_changed(const std::string& measure) {
  for (const char* name : {"parameters", "parameters a token uses", "compute a token", "checkpoint",
                           "checkpoint write", "goodput"})
    if (measure == name) return true;
  return false;
}

Cell unless_zero(double value) { return value == 0 ? Cell() : Cell(value); }

std::vector<Column> value_columns(std::string key, std::string title, Quantity quantity) {
  return {
      {std::move(key), std::move(title)},        {"base", "base", quantity},
      {"unchanged", "same placement", quantity}, {"unchanged_change", "change", Quantity::signed_fraction},
      {"replanned", "planned anew", quantity},   {"replanned_change", "change", Quantity::signed_fraction}};
}

/// The value of each variant and its change; empty where there is no variant or nothing to compare.
std::vector<Cell> value_row(std::string name, const Variants& variants,
                            const std::function<double(const Plan&)>& of) {
  const double base = of(*variants[0]);
  std::vector<Cell> row{std::move(name), unless_zero(base)};
  for (const Plan* plan : {variants[1], variants[2]}) {
    const double value = plan != nullptr ? of(*plan) : 0;
    row.push_back(unless_zero(value));
    // Rounding is no change.
    const bool changed = value != 0 && base != 0 && std::abs(value / base - 1) > 1e-9;
    row.push_back(changed ? Cell(value / base - 1) : Cell());
  }
  return row;
}

bool has_value(const std::vector<Cell>& row) {
  return std::any_of(row.begin() + 1, row.end(),
                     [](const Cell& cell) { return !std::holds_alternative<std::monostate>(cell); });
}

}  // namespace

Facts variant_placements(const Variants& variants) {
  Facts facts{"placements", "Placements", {}};
  const std::array<std::pair<const char*, const char*>, 3> names{
      {{"base", "base"}, {"unchanged", "same placement"}, {"replanned", "planned anew"}}};
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (const Plan* plan = variants[i])
      facts.facts.push_back(
          {names[i].first,
           names[i].second,
           Quantity::text,
           fmt::format("{}, {}; {}", mesh_words(plan->placement), schedule_words(plan->placement),
                       memory_saving_words(plan->placement)),
           {}});
  return facts;
}

Table variant_measures(const Variants& variants) {
  Table table{"variants", "Figures", value_columns("measure", "measure", Quantity::text), {}, false};
  for (const Measure& measure : measures()) {
    std::vector<Cell> row = value_row(measure.name, variants, measure.of);
    const auto changed = [&](const Plan* plan) {
      return plan != nullptr && measure.of(*plan) != measure.of(*variants[0]);
    };
    if (!has_value(row)) continue;
    if (only_where_changed(measure.name) && !changed(variants[1]) && !changed(variants[2])) continue;
    table.rows.push_back(std::move(row));
    table.row_quantities.push_back(measure.quantity);
  }
  return table;
}

Table variant_memory(const Variants& variants) {
  Table table{
      "memory", "Memory of the fullest device", value_columns("class", "class", Quantity::bytes), {}, true};
  for (const auto& entry : specs::EnumNames<specs::MemoryClass>::names) {
    const specs::MemoryClass memory_class = entry.first;
    std::vector<Cell> row = value_row(spoken_name(memory_class), variants, [&](const Plan& plan) {
      return static_cast<double>(
          device_bytes(plan.prediction, fullest_pipeline_rank(plan.prediction), memory_class));
    });
    if (has_value(row)) table.rows.push_back(std::move(row));
  }
  table.rows.push_back(value_row("all", variants, [](const Plan& plan) {
    return static_cast<double>(plan.prediction.peak_device_bytes);
  }));
  return table;
}

Table variant_times(const Variants& variants) {
  Table table{
      "time", "Time of one step, by term", value_columns("term", "term", Quantity::seconds), {}, true};
  for (const auto& entry : specs::EnumNames<specs::TimeTerm>::names) {
    const specs::TimeTerm term = entry.first;
    std::vector<Cell> row = value_row(
        spoken_name(term), variants, [&](const Plan& plan) { return plan.prediction.exposed_seconds(term); });
    if (has_value(row)) table.rows.push_back(std::move(row));
  }
  table.rows.push_back(
      value_row("step", variants, [](const Plan& plan) { return plan.prediction.step_seconds; }));
  return table;
}

}  // namespace planner
