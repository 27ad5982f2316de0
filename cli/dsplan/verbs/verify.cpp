// dsplan verify PLAN: the certificate held against code that did not make it.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/certificate/verify_certificate.h"
#include "planner/plan/versions.h"
#include "planner/report/verification_report.h"

namespace cli {
namespace {

struct VerifyArguments {
  std::string path;
  planner::VerifyOptions options;
};

/// Prices of another cost model would differ for that reason alone.
specs::Diagnostics priced_by_another(const specs::Plan& plan) {
  specs::Diagnostics diagnostics;
  if (plan.cost_model_version != planner::cost_model_version())
    diagnostics.error(
        {},
        fmt::format("the plan was priced by cost model {}, this program's is {}: what it claims of "
                    "prices cannot be verified",
                    plan.cost_model_version, planner::cost_model_version()),
        "plan again with this program, or verify with the one that made it");
  return diagnostics;
}

bool run(const VerifyArguments& arguments, Invocation& invocation) {
  const auto opened = open_plan(arguments.path, invocation);
  if (!opened) return false;
  if (const auto other = priced_by_another(opened->plan); other.has_errors()) return invocation.refuse(other);
  const auto verification = planner::verify_certificate(opened->plan, arguments.options);
  if (!verification) return invocation.refuse(verification.diagnostics);
  invocation.print(planner::verification_report(*verification));
  if (!verification->holds()) invocation.exit_code = exit_answer_is_no;
  return true;
}

}  // namespace

void add_verify_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb =
      app.add_subcommand("verify", "Hold a plan's certificate against code that did not make it");
  verb->footer("Exit code 1 where a claim does not hold.");
  auto arguments = std::make_shared<VerifyArguments>();
  add_plan_input(*verb, arguments->path);
  verb->add_option("--samples", arguments->options.samples_per_region, "Members priced of each region")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  verb->add_option("--seed", arguments->options.seed, "Of the samples")->capture_default_str();
  add_format_option(*verb, invocation);
  verb->callback([arguments, &invocation] { run(*arguments, invocation); });
}

}  // namespace cli
