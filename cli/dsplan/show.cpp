#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/dsplan/arguments.h"
#include "cli/dsplan/verbs.h"
#include "cli/exit_codes.h"
#include "specs/language/read_experiment.h"
#include "specs/language/text_file.h"
#include "specs/language/write_experiment.h"

namespace cli {

namespace {

struct Options {
  ExperimentArguments experiment;
  bool resolved = false;
};

/// The file as the user wrote it, checked; overrides have no place in it.
int show_as_written(const Options& options) {
  if (!load_experiment(options.experiment)) return exit_bad_input;
  const auto text = specs::read_text_file(options.experiment.path);
  if (!text) return exit_bad_input;
  std::fputs(text->c_str(), stdout);
  return exit_done;
}

int show_resolved(const Options& options) {
  const auto experiment = load_experiment(options.experiment);
  if (!experiment) return exit_bad_input;
  std::fputs(specs::write_experiment_toml(*experiment).c_str(), stdout);
  return exit_done;
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("show", "Check an experiment and print it");
  add_experiment_arguments(*verb, options->experiment);
  verb->add_flag("--resolved", options->resolved, "With every preset expanded and every default filled in");
  verb->callback([options, &exit_code] {
    const bool as_written = !options->resolved && options->experiment.overrides.empty();
    exit_code = as_written ? show_as_written(*options) : show_resolved(*options);
  });
}

}  // namespace cli
