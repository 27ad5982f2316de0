// dsplan report PLAN -o report.html: one page that needs no network.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cost_models/estimate.h"
#include "planner/report/layout_words.h"
#include "planner/report/page/page.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string path;
  std::string output = "report.html";
  std::string sweep_folder;
};

/// The plans of a folder in the order of their names; errors where it holds none or one cannot be read.
specs::Result<std::vector<planner::PagePoint>> read_sweep_points(const std::string& folder) {
  specs::Result<std::vector<planner::PagePoint>> result;
  std::error_code failure;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure))
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  if (failure)
    result.diagnostics.error({folder, 1, 1}, "the folder cannot be read: " + failure.message());
  else if (files.empty())
    result.diagnostics.error({folder, 1, 1}, "no plan in this folder", "write it with dsplan compile -o");
  std::sort(files.begin(), files.end());
  std::vector<planner::PagePoint> points;
  for (const fs::path& file : files) {
    const auto plan = specs::read_plan(file);
    result.diagnostics.append(plan.diagnostics);
    if (!plan) continue;
    points.push_back({file.stem().string(),
                      planner::mesh_words(plan->placement) + ", " + planner::schedule_words(plan->placement),
                      planner::pareto_point(plan->prediction)});
  }
  if (!result.diagnostics.has_errors()) result.value = std::move(points);
  return result;
}

bool run(const ReportOptions& options, Invocation& invocation) {
  if (!invocation.accepts_output(options.output, {options.path})) return false;
  const auto opened = open_plan(options.path, invocation);
  if (!opened) return false;
  planner::PageContent content{
      opened->plan,
      planner::simulate_step(cost_models::Estimator(opened->plan.inputs), opened->plan.placement),
      opened->usable_device_bytes,
      {}};
  if (!options.sweep_folder.empty()) {
    auto points = read_sweep_points(options.sweep_folder);
    if (!points) return invocation.refuse(points.diagnostics);
    content.sweep = std::move(*points);
  }
  if (!invocation.write(options.output, planner::report_page(content))) return false;
  if (invocation.json)
    invocation.out << nlohmann::ordered_json{{"file", options.output}}.dump(2) << '\n';
  else
    invocation.out << "written to " << options.output << '\n';
  return true;
}

}  // namespace

void add_report_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("report", "Write a plan as one HTML page that needs no network");
  auto options = std::make_shared<ReportOptions>();
  add_plan_input(*verb, options->path);
  verb->add_option("-o,--output", options->output, "Where the page is written")->capture_default_str();
  verb->add_option(
          "--sweep", options->sweep_folder,
          "Show the Pareto front of the plans in this folder (of dsplan compile), not of the runners-up")
      ->type_name("FOLDER");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
