// dsplan what-if SPEC --set …: the changed experiment beside the base, replanned and not.
#include "planner/questions/what_if.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/report/what_if_report.h"
#include "specs/language/key_places.h"

namespace cli {
namespace {

bool run(const ExperimentInput& input, Invocation& invocation) {
  const auto base = read({input.path, {}});
  if (!base) return invocation.refuse(base.diagnostics);
  const auto changed = read(input);
  if (!changed) return invocation.refuse(changed.diagnostics);
  invocation.print(changed.diagnostics);
  const auto answer = planner::what_if(*base, *changed);
  if (!answer)
    return invocation.refuse(specs::read_key_places(input.path, input.settings).located(answer.diagnostics));
  invocation.print(planner::what_if_report(*answer, fmt::format("{}", fmt::join(input.settings, ", "))));
  if (!answer->replanned.plan) invocation.exit_code = exit_answer_is_no;
  return true;
}

}  // namespace

void add_what_if_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("what-if", "Plan a changed experiment beside the base, replanned and not");
  auto input = std::make_shared<ExperimentInput>();
  add_experiment_input(*verb, *input);
  verb->get_option("--set")->required();
  add_format_option(*verb, invocation);
  verb->callback([input, &invocation] { run(*input, invocation); });
}

}  // namespace cli
