#include "planner/report/comparison_report.h"

#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/plan/cost_difference.h"
#include "planner/report/layout_words.h"
#include "specs/language/write_experiment.h"

namespace planner {
namespace {

using specs::CostBreakdown;

Column first_column(const ComparisonNames& names, std::string unit, Quantity quantity) {
  return {"from_" + unit, names.from, quantity};
}
Column second_column(const ComparisonNames& names, std::string unit, Quantity quantity) {
  return {"to_" + unit, names.to, quantity};
}

/// "section.key" → value of every line of the experiment's TOML, arrays of tables counted.
std::map<std::string, std::string> settings_of(const specs::Experiment& experiment) {
  std::map<std::string, std::string> settings;
  std::map<std::string, int> seen_sections;
  std::istringstream text(specs::write_experiment_toml(experiment));
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      const bool array = line.size() > 1 && line[1] == '[';
      const std::size_t start = array ? 2 : 1;
      section = line.substr(start, line.find(']') - start);
      if (array) section += fmt::format("[{}]", seen_sections[section]++);
      continue;
    }
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    settings[section.empty() ? line.substr(0, equals) : section + "." + line.substr(0, equals)] =
        line.substr(equals + 3);
  }
  return settings;
}

Table input_comparison(const specs::Experiment& from, const specs::Experiment& to,
                       const ComparisonNames& names) {
  Table table{"inputs", "Inputs that differ", {}, {}, false};
  table.columns = {{"setting", "setting"}, {"from", names.from}, {"to", names.to}};
  std::map<std::string, std::string> a = settings_of(from), b = settings_of(to);
  std::map<std::string, std::string> all = a;
  all.insert(b.begin(), b.end());
  for (const auto& [setting, value] : all)
    if (a[setting] != b[setting]) table.rows.push_back({setting, a[setting], b[setting]});
  return table;
}

std::string verdict_words(const WhyNot& answer, const specs::Plan& plan) {
  switch (answer.verdict) {
    case Verdict::illegal:
      return "no such placement is legal";
    case Verdict::does_not_fit:
      return "it does not fit";
    case Verdict::excluded_by_search:
      return "it is legal and fits, but the experiment's [search] leaves it out; " +
             describe_trade(plan.prediction, *answer.cost);
    case Verdict::worse:
      return "it is legal and fits: " + describe_trade(plan.prediction, *answer.cost);
    case Verdict::equal:
      return "it is as good; of equals the plan keeps the least on hosts, then on devices, or comes first";
    case Verdict::chosen:
      return "it is the plan";
  }
  return {};
}

}  // namespace

Table headline_comparison(const CostBreakdown& from, const CostBreakdown& to, const ComparisonNames& names) {
  Table table{"headline", "", {}, {}, false};
  table.columns = {{"measure", "measure"}, {"from", names.from}, {"to", names.to}, {"change", "change"}};
  const auto add = [&](std::string name, Quantity quantity, double a, double b) {
    if (a == 0 && b == 0) return;
    table.rows.push_back({std::move(name), format_quantity(quantity, a), format_quantity(quantity, b),
                          a == 0 ? std::string() : format_signed_fraction(b / a - 1)});
  };
  // Of a whole run, which a plan has only where its experiment says the tokens.
  const auto add_of_run = [&](std::string name, Quantity quantity, double a, double b) {
    if ((a == 0) == (b == 0)) return add(std::move(name), quantity, a, b);
    const auto unless_zero = [&](double value) {
      return value == 0 ? Cell() : Cell(format_quantity(quantity, value));
    };
    table.rows.push_back({std::move(name), unless_zero(a), unless_zero(b), Cell()});
  };
  add("step time", Quantity::seconds, from.step_seconds, to.step_seconds);
  add("throughput", Quantity::tokens_per_second, from.tokens_per_second, to.tokens_per_second);
  add("MFU", Quantity::fraction, from.model_flops_utilization, to.model_flops_utilization);
  add("device memory", Quantity::bytes, static_cast<double>(from.peak_device_bytes),
      static_cast<double>(to.peak_device_bytes));
  add("host memory a node", Quantity::bytes, static_cast<double>(from.peak_host_bytes_per_node),
      static_cast<double>(to.peak_host_bytes_per_node));
  add("cost a step", Quantity::dollars, from.cost_per_step_dollars, to.cost_per_step_dollars);
  add("energy a step", Quantity::joules, from.energy_per_step_joules, to.energy_per_step_joules);
  add_of_run("whole run", Quantity::seconds, from.run_seconds, to.run_seconds);
  add_of_run("cost of the run", Quantity::dollars, from.run_cost_dollars, to.run_cost_dollars);
  return table;
}

Table time_comparison(const CostBreakdown& from, const CostBreakdown& to, const ComparisonNames& names) {
  Table table{"time", "Time of one step, by term", {}, {}, true};
  table.columns = {{"term", "term"},
                   first_column(names, "seconds", Quantity::seconds),
                   second_column(names, "seconds", Quantity::seconds),
                   {"change_seconds", "change", Quantity::seconds}};
  for (const TermDifference& difference : time_differences(from, to))
    table.rows.push_back(
        {spoken_name(difference.term), difference.from_seconds, difference.to_seconds, difference.change()});
  if (table.rows.empty()) return table;
  table.rows.push_back(
      {std::string("step"), from.step_seconds, to.step_seconds, to.step_seconds - from.step_seconds});
  return table;
}

Table memory_comparison(const CostBreakdown& from, const CostBreakdown& to, const ComparisonNames& names) {
  Table table{"memory", "Memory of the fullest device, by class", {}, {}, true};
  table.columns = {{"class", "class"},
                   first_column(names, "bytes", Quantity::bytes),
                   second_column(names, "bytes", Quantity::bytes),
                   {"change_bytes", "change", Quantity::bytes}};
  for (const MemoryDifference& difference : memory_differences(from, to))
    table.rows.push_back({spoken_name(difference.memory_class), difference.from_bytes, difference.to_bytes,
                          difference.change()});
  if (table.rows.empty()) return table;
  const auto a = static_cast<double>(from.device_bytes(fullest_pipeline_rank(from)));
  const auto b = static_cast<double>(to.device_bytes(fullest_pipeline_rank(to)));
  table.rows.push_back({std::string("device"), a, b, b - a});
  return table;
}

Table placement_comparison(const specs::Placement& from, const specs::Placement& to,
                           const ComparisonNames& names) {
  Table table{"placement", "Placement", {}, {}, false};
  table.columns = {{"part", "part"}, {"from", names.from}, {"to", names.to}};
  const auto add = [&](std::string part, std::string a, std::string b) {
    if (a != b) table.rows.push_back({std::move(part), std::move(a), std::move(b)});
  };
  add("mesh", mesh_words(from), mesh_words(to));
  add("schedule", schedule_words(from), schedule_words(to));
  add("memory savers", memory_saving_words(from), memory_saving_words(to));
  add("ranks", format_count(from.world_size()), format_count(to.world_size()));
  if (table.rows.empty() && from != to)
    table.rows.push_back({std::string("stages"), std::string("cut otherwise"), std::string()});
  return table;
}

Report diff_report(const specs::Plan& from, const specs::Plan& to, const ComparisonNames& names) {
  Report report;
  if (from == to) {
    report.sections.push_back(Notes{"summary", "Difference", {"The plans are equal."}});
    return report;
  }
  Table headline = headline_comparison(from.prediction, to.prediction, names);
  headline.title = "Difference of two plans";
  report.sections.push_back(std::move(headline));
  report.sections.push_back(input_comparison(from.inputs, to.inputs, names));
  report.sections.push_back(placement_comparison(from.placement, to.placement, names));
  report.sections.push_back(time_comparison(from.prediction, to.prediction, names));
  report.sections.push_back(memory_comparison(from.prediction, to.prediction, names));
  return report;
}

Report why_not_report(const specs::Plan& plan, const WhyNot& answer, const std::string& question) {
  Report report;
  Facts facts{"answer", "Why not " + question + "?", {}};
  facts.facts.push_back({"verdict", "answer", Quantity::text, verdict_words(answer, plan), {}});
  for (std::size_t reason = 0; reason < answer.reasons.size(); ++reason)
    facts.facts.push_back({fmt::format("reason_{}", reason + 1),
                           reason == 0 ? "because" : "",
                           Quantity::text,
                           answer.reasons[reason],
                           {}});
  report.sections.push_back(std::move(facts));
  if (!answer.cost || answer.verdict == Verdict::chosen) return report;
  const ComparisonNames names{"the plan",
                              answer.verdict == Verdict::does_not_fit ? "the fastest such" : "the best such"};
  report.sections.push_back(placement_comparison(plan.placement, *answer.placement, names));
  report.sections.push_back(headline_comparison(plan.prediction, *answer.cost, names));
  report.sections.push_back(time_comparison(plan.prediction, *answer.cost, names));
  report.sections.push_back(memory_comparison(plan.prediction, *answer.cost, names));
  return report;
}

}  // namespace planner
