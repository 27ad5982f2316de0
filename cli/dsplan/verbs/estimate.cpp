// dsplan estimate SPEC --tensor 8 …: the price of a given placement, whether it fits or not.
// dsplan estimate --import config.json: what a Hugging Face model counts.
#include <array>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/plan/price_placement.h"
#include "planner/report/answer_reports.h"
#include "planner/report/model_report.h"
#include "planner/space/module_treatments.h"
#include "specs/interchange/hugging_face.h"
#include "specs/language/key_places.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

struct PlacementOption {
  std::string_view flag;
  std::string_view key;  ///< of [search]
  std::string_view help;
};

constexpr std::array<PlacementOption, 21> placement_options{{
    {"--tensor", "tensor", "Tensor-parallel degree"},
    {"--pipeline", "pipeline", "Pipeline ranks"},
    {"--data", "data", "Data-parallel degree"},
    {"--context", "context", "Context-parallel degree"},
    {"--expert", "expert", "Expert-parallel degree"},
    {"--expert-tensor", "expert_tensor", "Tensor degree inside an expert"},
    {"--micro-batch", "micro_batch", "Sequences of a micro-batch"},
    {"--schedule", "schedule", "Pipeline schedule: gpipe, 1f1b, interleaved, …"},
    {"--virtual-stages", "virtual_stages", "Stages a pipeline rank holds"},
    {"--recomputation", "recomputation", "none, selective or full"},
    {"--sequence-parallel", "sequence_parallel", "true or false"},
    {"--zero-stage", "zero_stage", "ZeRO stage, 0 to 3"},
    {"--shard-scope", "shard_scope", "world or node"},
    {"--offload-optimizer", "offload_optimizer", "none, cpu, nvme; cpu/4: four eighths"},
    {"--offload-parameters", "offload_parameters", "none, cpu, nvme; cpu/4: four eighths"},
    {"--offload-activations", "offload_activations", "none, cpu, nvme; cpu/4: four eighths"},
    {"--attention-tensor", "attention_tensor", "Tensor degree of the attention alone"},
    {"--feed-forward-tensor", "feed_forward_tensor", "Tensor degree of the FFN alone"},
    {"--embedding-tensor", "embedding_tensor", "Tensor degree of the embedding alone"},
    {"--output-tensor", "output_tensor", "Tensor degree of the output layer alone"},
    {"--output-mode", "output_mode", "vocabulary-parallel or token-parallel"},
}};

struct EstimateOptions {
  ExperimentInput input;
  std::string plan_path;
  std::string output;
  bool cut_before_ffn = false;
  std::string import_path;
  std::array<std::string, placement_options.size()> values;

  std::vector<std::string> placement_settings() const {
    std::vector<std::string> settings;
    for (std::size_t option = 0; option < values.size(); ++option)
      if (!values[option].empty())
        settings.push_back(std::string(placement_options[option].key) + "=" + values[option]);
    return settings;
  }
};

bool print_price(const specs::Result<planner::PricedPlan>& priced, const EstimateOptions& options,
                 Invocation& invocation) {
  if (!priced)
    return invocation.refuse(
        specs::read_key_places(options.input.path, options.input.settings).located(priced.diagnostics));
  if (!options.output.empty() && !invocation.write(options.output, specs::write_plan(priced->plan)))
    return false;
  invocation.print(
      planner::estimate_report(priced->plan, priced->usable_device_bytes, priced->memory_shortfall));
  if (!options.output.empty()) invocation.say_written(options.output);
  return true;
}

/// The best completion of what is given; treatments of single modules and cuts before FFNs that are asked for
/// are laid over it, whether the stack can run them or not.
specs::Result<planner::PricedPlan> price_given(specs::Experiment experiment, bool cut_before_ffn) {
  const specs::SearchSpec asked = experiment.search;
  if (planner::restricts_modules(asked)) experiment.search = planner::without_module_treatments(asked);
  auto priced = planner::price_best_completion(experiment);
  experiment.search = asked;
  if (!priced || (!planner::restricts_modules(asked) && !cut_before_ffn)) return priced;
  auto placement = planner::with_module_treatments(priced->plan.placement, asked);
  if (!placement) return {std::nullopt, placement.diagnostics};
  if (cut_before_ffn)
    placement = {planner::with_cuts_before_feed_forwards(*placement, specs::block_count(experiment.model)),
                 {}};
  return planner::price_placement(experiment, *placement);
}

bool refuse_both(const std::string& setting, Invocation& invocation) {
  specs::Diagnostics diagnostics;
  diagnostics.error({}, "--plan names the whole placement, " + setting + " a part of it",
                    "give one of the two");
  return invocation.refuse(diagnostics);
}

bool count_model(const EstimateOptions& options, Invocation& invocation) {
  if (!options.input.path.empty() || !options.plan_path.empty() || !options.input.settings.empty() ||
      !options.placement_settings().empty()) {
    specs::Diagnostics diagnostics;
    diagnostics.error(
        {}, "--import counts a model by itself, without an experiment or a placement",
        "to price it, write [model] import = \"" + options.import_path + "\" in the experiment");
    return invocation.refuse(diagnostics);
  }
  const auto model = specs::import_hugging_face(options.import_path);
  if (!model) return invocation.refuse(model.diagnostics);
  invocation.print(planner::model_report(*model, model.diagnostics));
  return true;
}

bool run(const EstimateOptions& options, Invocation& invocation) {
  if (!options.output.empty() &&
      !invocation.accepts_output(options.output,
                                 {options.input.path, options.plan_path, options.import_path}))
    return false;
  if (!options.import_path.empty()) return count_model(options, invocation);
  if (options.input.path.empty()) {
    specs::Diagnostics diagnostics;
    diagnostics.error({}, "SPEC is missing",
                      "dsplan estimate SPEC …, or dsplan estimate --import config.json");
    return invocation.refuse(diagnostics);
  }
  auto experiment = read(options.input);
  if (!experiment) return invocation.refuse(experiment.diagnostics);
  invocation.print(experiment.diagnostics);
  if (!options.plan_path.empty()) {
    if (const auto given = options.placement_settings(); !given.empty())
      return refuse_both(given.front(), invocation);
    const auto plan = specs::read_plan(options.plan_path);
    if (!plan) return invocation.refuse(plan.diagnostics);
    return print_price(planner::price_placement(*experiment, plan->placement), options, invocation);
  }
  const auto settings = as_search_settings(options.placement_settings());
  if (!settings) return invocation.refuse(settings.diagnostics);
  if (!settings->empty()) {
    experiment = with_settings(*experiment, *settings);
    if (!experiment) return invocation.refuse(experiment.diagnostics);
  }
  return print_price(price_given(*experiment, options.cut_before_ffn), options, invocation);
}

}  // namespace

void add_estimate_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("estimate", "Price a given placement, whether it fits or not");
  verb->footer("Dimensions that are left out are chosen at their best among those given.");
  auto options = std::make_shared<EstimateOptions>();
  add_experiment_input(*verb, options->input);
  verb->get_option("SPEC")->required(false);
  verb->add_option("--import", options->import_path,
                   "Count the parameters of a Hugging Face config.json (instead of SPEC)");
  verb->add_option("--plan", options->plan_path,
                   "Price the placement of this plan under SPEC (without the options below)");
  verb->add_option("-o,--output", options->output,
                   "Write the priced placement as a plan, without a certificate");
  verb->add_flag("--cut-before-ffn", options->cut_before_ffn,
                 "Cut the pipeline between an attention and its FFN instead of between layers");
  for (std::size_t option = 0; option < placement_options.size(); ++option)
    verb->add_option(std::string(placement_options[option].flag), options->values[option],
                     std::string(placement_options[option].help))
        ->type_name("VALUE");
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
