// dsplan explain PLAN: where each second and byte goes, and what would help most.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/questions/sensitivity.h"
#include "planner/report/explain_report.h"

namespace cli {
namespace {

void run(const std::string& path, Invocation& invocation) {
  const auto opened = open_plan(path, invocation);
  if (!opened) return;
  const specs::Plan& plan = opened->plan;
  invocation.print(planner::explain_report(plan, planner::sensitivity(plan.inputs, plan.placement),
                                           opened->usable_device_bytes));
}

}  // namespace

void add_explain_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("explain", "Show where each second and byte of a plan goes, and what would help");
  auto path = std::make_shared<std::string>();
  add_plan_input(*verb, *path);
  add_format_option(*verb, invocation);
  verb->callback([path, &invocation] { run(*path, invocation); });
}

}  // namespace cli
