#include "cli/dsplan/application.h"

#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/dsplan/invocation.h"
#include "cli/dsplan/verbs/verbs.h"
#include "cli/version.h"
#include "specs/diagnostics/diagnostic.h"

namespace cli {
namespace {

/// The word that stands where a verb should and is none.
std::string unknown_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return {};
  for (const CLI::App* verb : app.get_subcommands({}))
    if (verb->get_name() == arguments.front()) return {};
  return arguments.front();
}

void print_unknown_verb(const CLI::App& app, const std::string& word, std::ostream& err) {
  std::vector<std::string> known;
  for (const CLI::App* verb : app.get_subcommands({})) known.push_back(verb->get_name());
  err << "dsplan: unknown verb \"" << word << '"';
  if (const auto nearest = specs::nearest_name(word, known)) err << "; did you mean \"" << *nearest << "\"?";
  err << "\nRun with --help for more information.\n";
}

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 the answer is no, 2 bad input, 3 internal or system failure, 130 or 143 after "
    "Ctrl-C or "
    "SIGTERM.";

}  // namespace

int run_dsplan(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
               const TextStyle& style) {
  Invocation invocation{out, err, style};
  CLI::App app{"Plans the training of large models: the best placement on a cluster, and why.", "dsplan"};
  app.set_version_flag("--version", version_line("dsplan"));
  app.footer(exit_codes);
  app.require_subcommand(1);
  for (const auto add_verb : all_verbs) add_verb(app, invocation);
  if (const std::string word = unknown_verb(app, arguments); !word.empty()) {
    print_unknown_verb(app, word, err);
    return exit_bad_input;
  }
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
