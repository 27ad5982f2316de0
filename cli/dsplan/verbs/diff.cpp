// dsplan diff A B: what two plans differ in.
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/report/comparison_report.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

bool run(const std::string& from_path, const std::string& to_path, Invocation& invocation) {
  const auto from = specs::read_plan(from_path);
  const auto to = specs::read_plan(to_path);
  specs::Diagnostics diagnostics = from.diagnostics;
  diagnostics.append(to.diagnostics);
  if (!from || !to) return invocation.refuse(diagnostics);
  invocation.print(diagnostics);
  invocation.print(planner::diff_report(*from, *to, {from_path, to_path}));
  if (*from != *to) invocation.exit_code = exit_answer_is_no;
  return true;
}

}  // namespace

void add_diff_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("diff", "Compare two plans: inputs, placement, seconds and bytes");
  verb->footer("Exit code 0 where the plans are equal, 1 where they differ.");
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  verb->add_option("A", paths->first, "A plan (plan.json)")->required();
  verb->add_option("B", paths->second, "Another")->required();
  add_format_option(*verb, invocation);
  verb->callback([paths, &invocation] { run(paths->first, paths->second, invocation); });
}

}  // namespace cli
