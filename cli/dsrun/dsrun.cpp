#include "cli/dsrun/dsrun.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "cli/dsrun/arguments.h"
#include "runtime/launch/exit_codes.h"
#include "runtime/launch/local_launcher.h"
#include "runtime/launch/rank_session.h"
#include "runtime/mesh/shard_scope.h"
#include "runtime/probe/probe.h"
#include "runtime/train/executable_plan.h"
#include "runtime/train/run.h"
#include "runtime/train/run_data.h"
#include "runtime/train/run_directory.h"
#include "specs/language/text_file.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

int fail(const specs::Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", diagnostics.render());
  return runtime::exit_bad_input;
}

/// Everything about the plan that can be wrong is found here, before a rank starts.
specs::Result<runtime::RunOptions> read_options(const DsrunArguments& arguments) {
  specs::Result<runtime::RunOptions> result;
  auto text = specs::read_text_file(arguments.plan);
  result.diagnostics.append(text.diagnostics);
  if (!text.ok()) return result;
  auto plan = specs::read_plan_text(*text, arguments.plan);
  result.diagnostics.append(plan.diagnostics);
  if (!plan.ok()) return result;
  auto schedule = runtime::executable_schedule(*plan, arguments.plan);
  result.diagnostics.append(schedule.diagnostics);
  if (!schedule.ok()) return result;

  runtime::RunOptions options;
  options.run_directory = arguments.run_directory ? std::filesystem::path(*arguments.run_directory)
                                                  : std::filesystem::path("runs") / plan->inputs.name;
  options.plan = std::move(*plan);
  options.plan.placement = runtime::with_shard_ranks(options.plan.placement, options.plan.ranks);
  options.schedule = std::move(*schedule);
  options.plan_text = std::move(*text);
  if (arguments.data) options.data = *arguments.data;
  options.data_tokens = arguments.data_tokens;
  if (arguments.initial_weights) options.initial_weights = *arguments.initial_weights;
  options.steps = arguments.steps;
  options.directory_use = {
      .resume = arguments.resume, .overwrite = arguments.overwrite, .dry_run = arguments.dry_run};
  options.debug_synchronise = arguments.debug_synchronise;
  options.log_level = arguments.log_level;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * arguments.timeout_seconds));
  result.value = std::move(options);
  return result;
}

int run_as_rank(const runtime::RunOptions& options, const runtime::RankIdentity& identity) {
  int code = runtime::exit_done;
  try {
    runtime::run_rank(options, identity);
  } catch (const std::exception& error) {
    const runtime::RankFailure failure = runtime::failure_of(error);
    runtime::report_failure(identity.rank, failure);
    code = failure.exit_code;
  }
  std::fflush(nullptr);
  // Threads of a broken process group may wait for ever; nothing is left that a destructor would have to
  // save.
  if (code != runtime::exit_done) std::_Exit(code);
  return code;
}

int join_as_rank(const DsrunArguments& arguments, const runtime::RankIdentity& identity) {
  const auto options = read_options(arguments);
  // The plan is the same everywhere: one rank says what is wrong with it.
  if (!options.ok()) return identity.rank == 0 ? fail(options.diagnostics) : runtime::exit_bad_input;
  if (options->plan.world_size != identity.world_size) {
    if (identity.rank == 0)
      fmt::print(stderr,
                 "error: {} is for {} ranks, but {} started {}\n  remedy: start {} ranks, or plan for {}\n",
                 arguments.plan, options->plan.world_size, specs::name_of(identity.launcher),
                 identity.world_size, options->plan.world_size, identity.world_size);
    return runtime::exit_bad_input;
  }
  return run_as_rank(*options, identity);
}

int start_ranks(const DsrunArguments& arguments, int argc, char** argv) {
  const auto options = read_options(arguments);
  if (!options.ok()) return fail(options.diagnostics);
  // The ranks do this too; here it is said before any of them starts, and before there is a folder.
  if (!arguments.dry_run)
    if (const auto data = runtime::open_run_data(*options); !data.ok()) return fail(data.diagnostics);
  runtime::RunDirectoryLock lock;  // while the ranks run
  const specs::Diagnostics folder =
      runtime::prepare_run_directory(options->run_directory, options->directory_use, &lock);
  if (folder.has_errors()) return fail(folder);
  runtime::LocalLaunch launch;
  launch.arguments.assign(argv + 1, argv + argc);
  launch.ranks = options->plan.world_size;
  launch.threads_per_rank = arguments.threads_per_rank;
  return runtime::run_local(launch);
}

int run(const DsrunArguments& arguments, int argc, char** argv) {
  // A rank of our own launcher is told who it is as torchrun would tell it, whatever --launcher says.
  const bool ours = runtime::failure_channel() >= 0;
  const auto identity = runtime::read_launch_environment(
      runtime::process_environment(), ours ? runtime::Launcher::torchrun : arguments.launcher);
  if (!identity.ok()) return fail(identity.diagnostics);
  if (identity->has_value()) {
    runtime::RankIdentity rank = **identity;
    if (ours) rank.launcher = runtime::Launcher::local;
    return join_as_rank(arguments, rank);
  }
  return start_ranks(arguments, argc, argv);
}

int run_command(int argc, char** argv) {
  if (const std::optional<int> code = runtime::run_as_worker(runtime::probe_jobs())) return *code;
  // A write over the limit of file sizes is to fail like one to a full disk, not to kill.
  signal(SIGXFSZ, SIG_IGN);
  CLI::App app;
  app.name("dsrun");
  DsrunArguments arguments;
  declare(app, arguments);
  try {
    app.parse(argc, argv);
    if (!arguments.probe && arguments.plan.empty()) throw CLI::RequiredError("PLAN");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? runtime::exit_done : runtime::exit_bad_input;
  }
  try {
    if (arguments.probe) return runtime::run_probe(arguments.probe_file);
    return run(arguments, argc, argv);
  } catch (const std::exception& error) {
    const runtime::RankFailure failure = runtime::failure_of(error);
    fmt::print(stderr, "error: {}\n", failure.message);
    return failure.exit_code;
  }
}

}  // namespace

int run_dsrun(int argc, char** argv) {
  const int code = run_command(argc, argv);
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  if (written || code != runtime::exit_done) return code;
  fmt::print(stderr,
             "error: the output cannot be written\n  remedy: is the disk full, or the reader gone?\n");
  return runtime::exit_storage;
}

}  // namespace cli
