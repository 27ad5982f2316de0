#include "cli/dsplan/arguments.h"

#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

#include "specs/interchange/hugging_face.h"
#include "specs/language/read_experiment.h"

namespace cli {

void add_experiment_arguments(CLI::App& verb, ExperimentArguments& arguments) {
  verb.add_option("SPEC", arguments.path, "The experiment, a TOML file")->required();
  verb.add_option("--set", arguments.overrides,
                  "Override a key: path=value, for example training.global_batch=512")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
}

std::optional<specs::Experiment> load_experiment(const ExperimentArguments& arguments) {
  specs::Result<specs::Experiment> experiment =
      specs::read_experiment(arguments.path, arguments.overrides, specs::import_hugging_face);
  print_diagnostics(experiment.diagnostics);
  return std::move(experiment.value);
}

void add_format_argument(CLI::App& verb, OutputFormat& format) {
  static const std::map<std::string, OutputFormat> names{{"text", OutputFormat::text},
                                                         {"json", OutputFormat::json}};
  verb.add_option("--format", format, "text for people, json for programs")
      ->transform(CLI::CheckedTransformer(names))
      ->type_name("text|json");
}

void print_diagnostics(const specs::Diagnostics& diagnostics) {
  std::fputs(diagnostics.render().c_str(), stderr);
}

}  // namespace cli
