// dsplan inspect PLAN: the tables of a plan.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cost_models/estimate.h"
#include "planner/report/plan_report.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

bool run(const std::string& path, Invocation& invocation) {
  const auto plan = specs::read_plan(path);
  if (!plan) return invocation.refuse(plan.diagnostics);
  invocation.print(plan.diagnostics);
  const std::int64_t usable = cost_models::Estimator(plan->inputs).usable_device_bytes();
  invocation.print(planner::plan_report(*plan, {.usable_device_bytes = usable, .every_pipeline_rank = true}));
  return true;
}

}  // namespace

void add_inspect_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("inspect", "Print what a plan says, with every pipeline rank and its schedule");
  auto path = std::make_shared<std::string>();
  verb->add_option("PLAN", *path, "The plan (plan.json)")->required();
  add_format_option(*verb, invocation);
  verb->callback([path, &invocation] { run(*path, invocation); });
}

}  // namespace cli
