// dsplan inspect PLAN: the tables of a plan.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/report/plan_report.h"

namespace cli {
namespace {

void run(const std::string& path, Invocation& invocation) {
  const auto opened = open_plan(path, invocation);
  if (!opened) return;
  invocation.print(planner::plan_report(
      opened->plan, {.usable_device_bytes = opened->usable_device_bytes, .every_pipeline_rank = true}));
}

}  // namespace

void add_inspect_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("inspect", "Print what a plan says, with every pipeline rank and its schedule");
  auto path = std::make_shared<std::string>();
  add_plan_input(*verb, *path);
  add_format_option(*verb, invocation);
  verb->callback([path, &invocation] { run(*path, invocation); });
}

}  // namespace cli
