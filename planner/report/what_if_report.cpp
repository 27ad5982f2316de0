#include "planner/report/what_if_report.h"

#include <fmt/format.h>

#include "planner/report/variants_tables.h"

namespace planner {
namespace {

const specs::Plan* plan_of(const PlanOutcome& outcome) { return outcome.plan ? &*outcome.plan : nullptr; }

void add_infeasible(const PlanOutcome& outcome, const std::string& who, Notes& notes) {
  if (!outcome.infeasibility) return;
  for (const std::string& reason : outcome.infeasibility->reasons)
    notes.lines.push_back(fmt::format("{}: nothing fits: {}", who, reason));
}

}  // namespace

Report what_if_report(const WhatIf& answer, const std::string& change) {
  Report report;
  const Variants variants{plan_of(answer.base), answer.unchanged ? &answer.unchanged->plan : nullptr,
                          plan_of(answer.replanned)};
  Facts placements = variant_placements(variants);
  placements.title = "What if " + change;
  report.sections.push_back(std::move(placements));

  Notes notes{"notes", "Notes", {}};
  add_infeasible(answer.base, "base", notes);
  if (answer.unchanged && !answer.unchanged->memory_shortfall.empty())
    notes.lines.push_back("same placement: does not fit: " + answer.unchanged->memory_shortfall);
  for (const std::string& refusal : answer.unchanged_refusals)
    notes.lines.push_back("same placement: " + refusal);
  add_infeasible(answer.replanned, "planned anew", notes);
  report.sections.push_back(std::move(notes));

  if (variants[0] == nullptr) return report;
  report.sections.push_back(variant_measures(variants));
  report.sections.push_back(variant_times(variants));
  report.sections.push_back(variant_memory(variants));
  return report;
}

}  // namespace planner
