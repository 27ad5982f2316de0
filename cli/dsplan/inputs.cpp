#include "cli/dsplan/inputs.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "cost_models/estimate.h"
#include "specs/interchange/hugging_face.h"
#include "specs/language/read_experiment.h"
#include "specs/language/write_experiment.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

/// Keys of [search] that hold one value.
constexpr std::array<std::string_view, 6> scalar_search_keys{"uneven_stages",        "cuts_inside_layers",
                                                             "unequal_stage_meshes", "unequal_shares",
                                                             "idle_nodes",           "objective"};

bool is_scalar(std::string_view key) {
  return std::find(scalar_search_keys.begin(), scalar_search_keys.end(), key) != scalar_search_keys.end();
}

/// TOML of one value in a list: numbers and booleans as they are, words quoted.
std::string list_item(const std::string& value) {
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (number || value == "true" || value == "false" || value.front() == '"') return value;
  return '"' + value + '"';
}

}  // namespace

void add_experiment_input(CLI::App& verb, ExperimentInput& input) {
  verb.add_option("SPEC", input.path, "The experiment (TOML)")->required();
  verb.add_option("--set", input.settings, "Override a key: --set cluster.nodes=64 (repeatable)")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_plan_input(CLI::App& verb, std::string& path) {
  verb.add_option("PLAN", path, "The plan (plan.json)")->required();
}

std::optional<OpenedPlan> open_plan(const std::string& path, Invocation& invocation) {
  specs::Result<specs::Plan> plan = specs::read_plan(path);
  if (!plan) {
    invocation.refuse(plan.diagnostics);
    return std::nullopt;
  }
  invocation.print(plan.diagnostics);
  const std::int64_t usable = cost_models::Estimator(plan->inputs).most_usable_device_bytes();
  return OpenedPlan{std::move(*plan), usable};
}

void add_format_option(CLI::App& verb, Invocation& invocation) {
  verb.add_option_function<std::string>(
          "--format", [&invocation](const std::string& format) { invocation.json = format == "json"; },
          "text for people, json for programs")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

specs::Result<specs::Experiment> read(const ExperimentInput& input) {
  return specs::read_experiment(input.path, input.settings, specs::import_hugging_face);
}

specs::Result<specs::Experiment> with_settings(const specs::Experiment& experiment,
                                               const std::vector<std::string>& settings) {
  return specs::read_experiment_text(specs::write_experiment_toml(experiment), experiment.name + ".toml",
                                     settings);
}

specs::Result<std::vector<std::string>> as_search_settings(const std::vector<std::string>& settings) {
  constexpr std::string_view section = "search.";
  specs::Result<std::vector<std::string>> result;
  std::vector<std::string> translated;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    std::string key = setting.substr(0, equals);
    if (key.starts_with(section)) key.erase(0, section.size());
    if (equals == std::string::npos || equals + 1 == setting.size() || key.empty() || key == "objective" ||
        setting.ends_with("=[]") || key.find('.') != std::string::npos) {
      result.diagnostics.error({"--set", 1, 1},
                               fmt::format("\"{}\" is not a dimension of the placement", setting),
                               "write tensor=16, recomputation=full, … (the keys of [search])");
      continue;
    }
    const std::string value = setting.substr(equals + 1);
    const bool as_it_is = is_scalar(key) || value.front() == '[';
    translated.push_back(
        fmt::format("{}{}={}", section, key, as_it_is ? value : "[" + list_item(value) + "]"));
  }
  if (!result.diagnostics.has_errors()) result.value = std::move(translated);
  return result;
}

}  // namespace cli
