#include "planner/report/answer_reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/certificate/certificate.h"
#include "planner/report/cost_tables.h"
#include "planner/report/plan_report.h"
#include "planner/space/restrictions.h"

namespace planner {

namespace {

/// "at spec.toml:14:12 and --set:1:15": of the restrictions that the reason names; empty where none is
/// written.
std::string places_of(const std::string& reason, const specs::KeyPlaces& places) {
  std::vector<std::string> words;
  for (const Restriction& restriction : all_restrictions()) {
    const std::string path = fmt::format("search.{}", restriction.key);
    if (reason.find(path + " = ") == std::string::npos) continue;
    if (std::string place = places.words(path); !place.empty()) words.push_back(std::move(place));
  }
  return words.empty() ? std::string() : fmt::format("at {}", fmt::join(words, " and "));
}

}  // namespace

Report infeasibility_report(const specs::Experiment& experiment, const Infeasibility& infeasibility,
                            const specs::KeyPlaces& places) {
  Report report;
  Facts facts{"answer", fmt::format("No plan for {}", experiment.name), {}};
  const auto add = [&](std::string key, std::string title, std::string value, std::string note = {}) {
    facts.facts.push_back(
        {std::move(key), std::move(title), Quantity::text, std::move(value), std::move(note)});
  };
  if (infeasibility.nearest) {
    add("candidates", "answer",
        fmt::format("none of {} placements fits", with_commas(infeasibility.candidates.str())));
    add("nearest", "nearest",
        describe(mesh_of(infeasibility.nearest->placement)) + " " +
            describe_inside_mesh(infeasibility.nearest->placement));
  } else {
    add("candidates", "answer", "no placement is legal");
  }
  for (std::size_t reason = 0; reason < infeasibility.reasons.size(); ++reason)
    add(fmt::format("reason_{}", reason + 1), reason == 0 ? "because" : "or", infeasibility.reasons[reason],
        places_of(infeasibility.reasons[reason], places));
  report.sections.push_back(std::move(facts));

  Table table{"remedies", "What makes a plan possible (each tried)", {}, {}, false};
  table.columns = {{"change", "change"},
                   {"setting", "--set"},
                   {"step_seconds", "step", Quantity::seconds},
                   {"peak_device_bytes", "memory", Quantity::bytes},
                   {"placement", "placement"}};
  for (const Remedy& remedy : infeasibility.remedies)
    table.rows.push_back({remedy.change, remedy.setting, remedy.candidate.price.step_seconds,
                          remedy.candidate.price.peak_device_bytes,
                          describe(mesh_of(remedy.candidate.placement)) + " " +
                              describe_inside_mesh(remedy.candidate.placement)});
  report.sections.push_back(std::move(table));
  if (infeasibility.remedies.empty())
    report.sections.push_back(
        Notes{"no_remedy", "", {"No single change that was tried (nodes, [search], devices, stack) helps."}});
  return report;
}

Report space_report(const Space& space) {
  Report report;
  Facts facts{"space", "Search space", {}};
  facts.facts.push_back(
      {"candidates", "candidates", Quantity::count, static_cast<std::int64_t>(space.outer_points()), {}});
  facts.facts.push_back(
      {"meshes", "meshes", Quantity::count, static_cast<std::int64_t>(space.meshes().size()), {}});
  facts.facts.push_back({"devices", "devices in use", Quantity::count, space.largest_world_size(), {}});
  report.sections.push_back(std::move(facts));

  Table table{"dimensions", "Dimensions", {{"dimension", "dimension"}, {"values", "values"}}, {}, false};
  Notes excluded{"excluded", "Left out", {}};
  for (const Dimension& dimension : space.dimensions()) {
    table.rows.push_back({dimension.name, fmt::format("{}", fmt::join(dimension.values, " "))});
    for (const std::string& reason : dimension.excluded)
      excluded.lines.push_back(dimension.name + " " + reason);
  }
  report.sections.push_back(std::move(table));
  report.sections.push_back(std::move(excluded));
  return report;
}

Report estimate_report(const specs::Plan& plan, std::int64_t usable_device_bytes,
                       const std::string& memory_verdict) {
  Report report;
  Facts summary = plan_summary(plan, usable_device_bytes);
  summary.title = fmt::format("Price of a placement of {}", plan.inputs.name);
  summary.key = "estimate";
  summary.facts.push_back(
      {"fits", "fits", Quantity::text, memory_verdict.empty() ? "yes" : "no", memory_verdict});
  report.sections.push_back(std::move(summary));
  report.sections.push_back(detailed_time_table(plan.prediction));
  report.sections.push_back(memory_table(plan.prediction, usable_device_bytes));
  report.sections.push_back(off_device_table(plan.prediction));
  return report;
}

}  // namespace planner
