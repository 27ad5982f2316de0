// dsplan why-not PLAN --set tensor=16 …: the constraint that excludes a placement, or what it costs more.
#include "planner/questions/why_not.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/report/comparison_report.h"

namespace cli {
namespace {

struct WhyNotOptions {
  std::string path;
  std::vector<std::string> settings;
};

/// What the stack or the model leaves no value for is the answer here. A key or a value that is none of the
/// dimension's is bad input.
bool answer_illegal(const specs::Plan& plan, const std::string& question,
                    const specs::Diagnostics& diagnostics, Invocation& invocation) {
  planner::WhyNot answer;
  for (const specs::Diagnostic& diagnostic : diagnostics.entries())
    if (diagnostic.severity == specs::Severity::error) {
      if (diagnostic.message.find(": no value is possible: ") == std::string::npos)
        return invocation.refuse(diagnostics);
      answer.reasons.push_back(diagnostic.message);
    }
  invocation.print(planner::why_not_report(plan, answer, question));
  return true;
}

bool run(const WhyNotOptions& options, Invocation& invocation) {
  const auto opened = open_plan(options.path, invocation);
  if (!opened) return false;
  const specs::Plan& plan = opened->plan;
  const auto settings = as_search_settings(options.settings);
  if (!settings) return invocation.refuse(settings.diagnostics);
  const specs::Diagnostics nonsense = planner::impossible_values(plan, *settings);
  if (nonsense.has_errors()) return invocation.refuse(nonsense);
  const std::string words = fmt::format("{}", fmt::join(options.settings, ", "));
  specs::Experiment free_inputs = plan.inputs;
  const specs::Objective objective = free_inputs.search.objective;
  free_inputs.search = {};
  free_inputs.search.objective = objective;
  const auto question = with_settings(free_inputs, *settings);
  if (!question) return answer_illegal(plan, words, question.diagnostics, invocation);
  const auto answer = planner::why_not(plan, with_settings(plan.inputs, *settings).value, *question);
  if (!answer) return invocation.refuse(answer.diagnostics);
  invocation.print(planner::why_not_report(plan, *answer, words));
  return true;
}

}  // namespace

void add_why_not_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("why-not", "Say why a plan is not another placement");
  auto options = std::make_shared<WhyNotOptions>();
  add_plan_input(*verb, options->path);
  verb->add_option(
          "--set", options->settings,
          "A dimension of the placement, as in [search]: --set tensor=16 (repeatable); what is left out is "
          "chosen at its best")
      ->type_name("DIMENSION=VALUE")
      ->required()
      ->expected(1)
      ->take_all();
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
