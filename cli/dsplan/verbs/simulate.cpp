// dsplan simulate PLAN: every pipeline rank's schedule, event by event, and the trace of it.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cost_models/estimate.h"
#include "planner/report/layout_words.h"
#include "planner/report/simulation_report.h"
#include "planner/simulate/chrome_trace.h"
#include "specs/language/text_file.h"

namespace cli {
namespace {

struct SimulateOptions {
  std::string path;
  std::string trace_path;
};

planner::TraceNames trace_names(const specs::Plan& plan) {
  planner::TraceNames names{fmt::format("{}: {}, {}", plan.inputs.name, planner::mesh_words(plan.placement),
                                        planner::schedule_words(plan.placement)),
                            {}};
  const std::int64_t layers = specs::block_count(plan.inputs.model);
  for (std::int64_t rank = 0; rank < plan.placement.pipeline_ranks(); ++rank)
    names.rank_names.push_back(
        fmt::format("pipeline rank {}: {}", rank, planner::rank_unit_words(plan.placement, rank, layers)));
  return names;
}

bool run(const SimulateOptions& options, Invocation& invocation) {
  if (!options.trace_path.empty() && !invocation.accepts_output(options.trace_path, {options.path}))
    return false;
  const auto opened = open_plan(options.path, invocation);
  if (!opened) return false;
  const planner::StepSimulation step =
      planner::simulate_step(cost_models::Estimator(opened->plan.inputs), opened->plan.placement);
  if (!options.trace_path.empty() &&
      !invocation.write(options.trace_path, planner::chrome_trace(step, trace_names(opened->plan))))
    return false;
  invocation.print(planner::simulation_report(opened->plan, step));
  if (!options.trace_path.empty()) invocation.say_written(options.trace_path);
  return true;
}

}  // namespace

void add_simulate_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("simulate", "Run a plan's schedule event by event, and write its trace");
  auto options = std::make_shared<SimulateOptions>();
  add_plan_input(*verb, options->path);
  verb->add_option("--trace", options->trace_path,
                   "Write the trace here (JSON for ui.perfetto.dev or chrome://tracing)")
      ->type_name("FILE");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
