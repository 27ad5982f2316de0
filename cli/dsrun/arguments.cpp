#include "cli/dsrun/arguments.h"

#include <map>

#include <CLI/CLI.hpp>

#include "cli/version.h"
#include "runtime/version.h"

namespace cli {

namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000;
constexpr std::int64_t most_threads = 4096;

}  // namespace

void declare(CLI::App& app, DsrunArguments& arguments) {
  app.description(
      "Trains what a plan describes: starts the plan's ranks on this machine, or joins them when started by "
      "torchrun, Slurm, Open MPI or Hydra.");
  app.set_version_flag("--version",
                       version_line("dsrun") + " (LibTorch " + runtime::libtorch_version() + ")");
  app.add_option("PLAN", arguments.plan, "plan.json, as dsplan wrote it");
  app.add_option("--data", arguments.data,
                 "text (a file or a folder), or tokens in Megatron's .bin/.idx; else LibTorch's C++ headers");
  app.add_option("--data-tokens", arguments.data_tokens, "use only the first N tokens of the data; else all")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000'000}));
  app.add_option("--run-dir", arguments.run_directory,
                 "where checkpoints, metrics and logs go; else runs/NAME of the experiment");
  app.add_option("--steps", arguments.steps, "stop after this many optimizer updates; else after the plan's")
      ->check(CLI::Range(std::int64_t{1}, most_steps));
  app.add_option("--init-weights", arguments.initial_weights,
                 "begin with these: a .safetensors file or a folder of them, with Hugging Face's names")
      ->check(CLI::ExistingPath);
  auto* resume = app.add_flag("--resume", arguments.resume,
                              "go on from the newest whole checkpoint, where there is one");
  app.add_flag("--overwrite", arguments.overwrite, "begin anew where the run folder holds an earlier run")
      ->excludes(resume);
  app.add_flag("--dry-run", arguments.dry_run,
               "start the ranks, connect them, build the model, and train nothing");
  app.add_flag("--debug-sync", arguments.debug_synchronise,
               "wait for all communication after each backward pass, to see where an error comes from");
  app.add_option("--log-level", arguments.log_level, "of the log files")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--timeout", arguments.timeout_seconds,
                 "seconds to wait for an absent rank, at the start and in each collective")
      ->check(CLI::Range(0.1, 86400.0))
      ->check([](const std::string& text) {  // no comparison refuses a number that is none
        return text.find_first_of("nN") == std::string::npos ? std::string() : text + " is not a number";
      })
      ->capture_default_str();
  app.add_option("--threads", arguments.threads_per_rank,
                 "of the math libraries, per rank; else cores / ranks")
      ->check(CLI::Range(std::int64_t{1}, most_threads));
  std::map<std::string, runtime::Launcher> launchers;
  for (const auto& [launcher, name] : specs::EnumNames<runtime::Launcher>::names)
    launchers.emplace(std::string(name), launcher);
  app.add_option("--launcher", arguments.launcher, "whose variables tell this process its rank")
      ->transform(CLI::CheckedTransformer(launchers, CLI::ignore_case))
      ->option_text("{auto,local,torchrun,slurm,openmpi,hydra} [auto]");
  app.add_flag("--probe", arguments.probe,
               "measure this machine's rates for dsplan's `localhost`, and train nothing");
  app.add_option("--probe-file", arguments.probe_file, "where --probe writes; else where dsplan looks");
}

}  // namespace cli
