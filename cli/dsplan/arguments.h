// Arguments that several verbs share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"

namespace cli {

/// `SPEC` and `--set path=value`, several times.
struct ExperimentArguments {
  std::string path;
  std::vector<std::string> overrides;
};
void add_experiment_arguments(CLI::App& verb, ExperimentArguments& arguments);

/// Reads the experiment; errors, warnings and notes go to stderr. Nothing where there are errors.
std::optional<specs::Experiment> load_experiment(const ExperimentArguments& arguments);

enum class OutputFormat : std::uint8_t { text, json };
/// `--format text|json`.
void add_format_argument(CLI::App& verb, OutputFormat& format);

void print_diagnostics(const specs::Diagnostics& diagnostics);

}  // namespace cli
