// dsplan compile SPEC: a plan for each point of [sweep], and one table.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/report/sweep_report.h"
#include "planner/sweep.h"
#include "specs/interchange/hugging_face.h"
#include "specs/language/text_file.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

struct CompileOptions {
  ExperimentInput input;
  std::string folder = "plans";
};

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// Ctrl-C and SIGTERM end the sweep after the points that are being planned; restored at the end.
class StopOnSignal {
 public:
  StopOnSignal() {
    interrupted = false;
    previous_int_ = std::signal(SIGINT, [](int) { interrupted = true; });
    previous_term_ = std::signal(SIGTERM, [](int) { interrupted = true; });
  }
  ~StopOnSignal() {
    std::signal(SIGINT, previous_int_);
    std::signal(SIGTERM, previous_term_);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  void (*previous_int_)(int);
  void (*previous_term_)(int);
};

/// "plans/point-07.json": as many digits as the count needs.
std::string file_of(const CompileOptions& options, std::size_t point, std::size_t points) {
  const std::size_t digits = std::to_string(points).size();
  return (std::filesystem::path(options.folder) / fmt::format("point-{:0{}}.json", point + 1, digits))
      .string();
}

bool run(const CompileOptions& options, Invocation& invocation) {
  const auto points =
      specs::read_sweep(options.input.path, options.input.settings, specs::import_hugging_face);
  if (!points) return invocation.refuse(points.diagnostics);
  invocation.print(points.diagnostics);
  specs::Diagnostics failures;
  std::vector<std::string> files(points->size());
  std::size_t done = 0;
  const auto finished = [&](std::size_t point, const planner::SweepOutcome& outcome) {
    ++done;
    invocation.err << fmt::format("\r{} of {} points planned", done, points->size()) << std::flush;
    if (!outcome.outcome || !outcome.outcome->plan) return;
    files[point] = file_of(options, point, points->size());
    const specs::Diagnostics written =
        specs::write_text_file(files[point], specs::write_plan(*outcome.outcome->plan));
    failures.append(written);
    if (written.has_errors()) files[point].clear();
  };
  std::vector<planner::SweepOutcome> outcomes;
  {
    const StopOnSignal stop_on_signal;
    outcomes = planner::run_sweep(*points, std::thread::hardware_concurrency(), finished, interrupted);
  }
  invocation.err << '\n';
  invocation.print(planner::sweep_report(points->front().experiment.name, outcomes, files));
  if (failures.has_errors()) {
    invocation.print(failures);
    invocation.exit_code = exit_internal;
    return false;
  }
  if (std::all_of(files.begin(), files.end(), [](const std::string& file) { return file.empty(); }))
    invocation.exit_code = exit_answer_is_no;
  return true;
}

}  // namespace

void add_compile_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("compile", "Plan every point of [sweep]: a plan each, and one table");
  auto options = std::make_shared<CompileOptions>();
  add_experiment_input(*verb, options->input);
  verb->add_option("-o,--output", options->folder, "The folder the plans are written to")
      ->capture_default_str();
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
