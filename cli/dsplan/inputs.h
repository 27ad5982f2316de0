// What verbs read: an experiment with its overrides, a plan; and the options that name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/dsplan/invocation.h"
#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/plan/plan.h"

namespace cli {

struct ExperimentInput {
  std::string path;
  std::vector<std::string> settings;  ///< `path=value`
};

/// SPEC and --set.
void add_experiment_input(CLI::App& verb, ExperimentInput& input);

/// PLAN.
void add_plan_input(CLI::App& verb, std::string& path);

/// A plan from its file, and the device memory that its first group has for training.
struct OpenedPlan {
  specs::Plan plan;
  std::int64_t usable_device_bytes = 0;
};

/// Reads and checks the plan and prints what is to be said about it; refused: nothing, and the exit code is
/// set.
std::optional<OpenedPlan> open_plan(const std::string& path, Invocation& invocation);

/// --format text|json.
void add_format_option(CLI::App& verb, Invocation& invocation);

specs::Result<specs::Experiment> read(const ExperimentInput& input);

/// `experiment` with `settings` applied to it as `--set` would to its file.
specs::Result<specs::Experiment> with_settings(const specs::Experiment& experiment,
                                               const std::vector<std::string>& settings);

/// "tensor=16" → "search.tensor=[16]", the way [search] restricts a dimension to one value; lists and keys
/// that are no lists stay as they are. Settings of anything but the placement are errors.
specs::Result<std::vector<std::string>> as_search_settings(const std::vector<std::string>& settings);

}  // namespace cli
