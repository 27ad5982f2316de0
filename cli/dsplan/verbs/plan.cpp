// dsplan plan SPEC: search, print, write plan.json.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/stop_on_signal.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cost_models/estimate.h"
#include "planner/plan/plan_experiment.h"
#include "planner/report/answer_reports.h"
#include "planner/report/plan_report.h"
#include "planner/space/space.h"
#include "specs/language/catalog.h"
#include "specs/language/key_places.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

struct PlanOptions {
  ExperimentInput input;
  std::string output = "plan.json";
  bool dry_run = false;
  bool show_space = false;
  bool exhaustive = false;
};

bool show_space(const specs::Experiment& experiment, const ExperimentInput& input, Invocation& invocation) {
  specs::Diagnostics diagnostics = planner::unplannable(experiment);
  const auto stack = specs::stack_of(experiment.training);
  diagnostics.append(stack.diagnostics);
  if (diagnostics.has_errors())
    return invocation.refuse(specs::read_key_places(input.path, input.settings).located(diagnostics));
  const planner::Space space(experiment, *stack);
  invocation.print(planner::space_report(space));
  if (space.meshes().empty()) invocation.exit_code = exit_answer_is_no;
  return true;
}

bool run(const PlanOptions& options, Invocation& invocation) {
  const bool writes = !options.dry_run && !options.show_space;
  if (writes && !invocation.accepts_output(options.output, {options.input.path})) return false;
  const auto experiment = read(options.input);
  if (!experiment) return invocation.refuse(experiment.diagnostics);
  invocation.print(experiment.diagnostics);
  if (options.show_space) return show_space(*experiment, options.input, invocation);

  const StopOnSignal stop_on_signal;
  const auto outcome = planner::plan_experiment(
      *experiment, &stop_on_signal.wanted(),
      options.exhaustive ? planner::SearchMethod::exhaustive : planner::SearchMethod::branch_and_bound);
  if (!outcome)
    return invocation.refuse(
        specs::read_key_places(options.input.path, options.input.settings).located(outcome.diagnostics));
  if (stop_on_signal.wanted()) invocation.exit_code = stop_on_signal.exit_code();
  if (!outcome->plan && !outcome->infeasibility) {
    invocation.err << "interrupted before any placement was found to fit\n";
    return false;
  }
  if (outcome->infeasibility) {
    invocation.print(
        planner::infeasibility_report(*experiment, *outcome->infeasibility,
                                      specs::read_key_places(options.input.path, options.input.settings)));
    invocation.exit_code = exit_answer_is_no;
    return false;
  }
  if (!options.dry_run && !invocation.write(options.output, specs::write_plan(*outcome->plan))) return false;
  const std::int64_t usable = cost_models::Estimator(*experiment).most_usable_device_bytes();
  invocation.print(planner::plan_report(*outcome->plan, {.usable_device_bytes = usable}));
  if (!options.dry_run) invocation.say_written(options.output);
  return true;
}

}  // namespace

void add_plan_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("plan", "Find the best placement and write plan.json");
  auto options = std::make_shared<PlanOptions>();
  add_experiment_input(*verb, options->input);
  verb->add_option("-o,--output", options->output, "Where the plan is written")->capture_default_str();
  verb->add_flag("--dry-run", options->dry_run, "Print the plan, write nothing");
  verb->add_flag("--exhaustive", options->exhaustive,
                 "Price every candidate, one after the other: the slow reference of the search");
  verb->footer(
      "Exit codes: 0 done, 1 nothing fits, 2 bad input, 3 internal or system failure, 130 or 143 after "
      "Ctrl-C or SIGTERM: the best plan so far, with a gap that is not proven.");
  verb->add_flag("--show-space", options->show_space,
                 "Print the search space and what is left out, and stop");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
