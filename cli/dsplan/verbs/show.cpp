// dsplan show SPEC [--resolved]: check an experiment and print it.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "specs/language/text_file.h"
#include "specs/language/write_experiment.h"

namespace cli {
namespace {

struct ShowOptions {
  ExperimentInput input;
  bool resolved = false;
};

void print_toml(const std::string& name, const std::string& text, Invocation& invocation) {
  if (invocation.json)
    invocation.out << nlohmann::ordered_json{{"name", name}, {"toml", text}}.dump(2) << '\n';
  else
    invocation.out << text;
}

bool run(const ShowOptions& options, Invocation& invocation) {
  const auto experiment = read(options.input);
  if (!experiment) return invocation.refuse(experiment.diagnostics);
  invocation.print(experiment.diagnostics);
  // The file as the user wrote it; overrides have no place in it.
  if (!options.resolved && options.input.settings.empty()) {
    const auto text = specs::read_text_file(options.input.path);
    if (!text) return invocation.refuse(text.diagnostics);
    print_toml(experiment->name, *text, invocation);
  } else {
    print_toml(experiment->name, specs::write_experiment_toml(*experiment), invocation);
  }
  return true;
}

}  // namespace

void add_show_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("show", "Check an experiment and print it");
  auto options = std::make_shared<ShowOptions>();
  add_experiment_input(*verb, options->input);
  verb->add_flag("--resolved", options->resolved, "With every preset expanded and every default filled in");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
