#include "cli/dsplan/application.h"

#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/dsplan/invocation.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cli/version.h"

namespace cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 the answer is no, 2 bad input, 3 internal or system failure.";

}  // namespace

int run_dsplan(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
               const TextStyle& style) {
  Invocation invocation{out, err, style};
  CLI::App app{"Plans the training of large models: the best placement on a cluster, and why.", "dsplan"};
  app.set_version_flag("--version", version_line("dsplan"));
  app.footer(exit_codes);
  app.require_subcommand(1);
  for (const auto add_verb : all_verbs) add_verb(app, invocation);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    const bool asked_for = app.exit(error, out, err) == 0;
    return asked_for ? exit_done : exit_bad_input;
  } catch (const std::exception& error) {
    err << "dsplan: internal error: " << error.what() << '\n';
    return exit_internal;
  }
  return invocation.exit_code;
}

}  // namespace cli
