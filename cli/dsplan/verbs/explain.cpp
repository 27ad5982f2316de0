// dsplan explain PLAN: where each second and byte goes, and what would help most.
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cost_models/estimate.h"
#include "planner/report/explain_report.h"
#include "planner/sensitivity.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

bool run(const std::string& path, Invocation& invocation) {
  const auto plan = specs::read_plan(path);
  if (!plan) return invocation.refuse(plan.diagnostics);
  invocation.print(plan.diagnostics);
  const std::int64_t usable = cost_models::Estimator(plan->inputs).usable_device_bytes();
  invocation.print(
      planner::explain_report(*plan, planner::sensitivity(plan->inputs, plan->placement), usable));
  return true;
}

}  // namespace

void add_explain_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("explain", "Show where each second and byte of a plan goes, and what would help");
  auto path = std::make_shared<std::string>();
  verb->add_option("PLAN", *path, "The plan (plan.json)")->required();
  add_format_option(*verb, invocation);
  verb->callback([path, &invocation] { run(*path, invocation); });
}

}  // namespace cli
