// dsplan compile SPEC: a plan for each point of [sweep], and one table.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/stop_on_signal.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/questions/sweep.h"
#include "planner/report/sweep_report.h"
#include "specs/interchange/hugging_face.h"
#include "specs/language/text_file.h"
#include "specs/plan/plan_json.h"

namespace cli {
namespace {

struct CompileOptions {
  ExperimentInput input;
  std::string folder = "plans";
  bool anew = false;
  std::optional<double> within_days;
};

constexpr double seconds_per_day = 86400;

/// "plans/point-07.json": as many digits as the count needs.
std::string file_of(const CompileOptions& options, std::size_t point, std::size_t points) {
  const std::size_t digits = std::to_string(points).size();
  return (std::filesystem::path(options.folder) / fmt::format("point-{:0{}}.json", point + 1, digits))
      .string();
}

/// The plan that an earlier run of the same sweep left in `file`; nothing where there is none of this
/// experiment.
std::optional<specs::Plan> plan_made_before(const std::string& file, const specs::Experiment& experiment) {
  std::error_code failure;
  if (!std::filesystem::exists(file, failure)) return std::nullopt;
  specs::Result<specs::Plan> plan = specs::read_plan(file);
  if (!plan || !planner::answers(*plan, experiment)) return std::nullopt;
  return std::move(*plan);
}

/// One run of `compile`: which plans are there, which are made, what could not be written.
class SweepFiles {
 public:
  SweepFiles(const CompileOptions& options, const std::vector<specs::SweepPoint>& points)
      : options_(options), points_(points), files_(points.size()) {}

  std::optional<specs::Plan> made_before(std::size_t point) {
    if (options_.anew) return std::nullopt;
    std::string file = file_of(options_, point, points_.size());
    auto plan = plan_made_before(file, points_[point].experiment);
    if (plan) files_[point] = std::move(file);
    return plan;
  }

  void write(std::size_t point, const specs::Plan& plan) {
    const std::string file = file_of(options_, point, points_.size());
    const specs::Diagnostics written = specs::write_text_file(file, specs::write_plan(plan));
    failures_.append(written);
    if (!written.has_errors()) files_[point] = file;
  }

  const std::vector<std::string>& files() const { return files_; }
  const specs::Diagnostics& failures() const { return failures_; }
  std::ptrdiff_t count() const {
    return std::count_if(files_.begin(), files_.end(), [](const std::string& file) { return !file.empty(); });
  }

 private:
  const CompileOptions& options_;
  const std::vector<specs::SweepPoint>& points_;
  std::vector<std::string> files_;  ///< one a point: threads write to entries of their own
  specs::Diagnostics failures_;
};

bool refuse_without_tokens(const std::vector<specs::SweepPoint>& points, Invocation& invocation) {
  specs::Diagnostics diagnostics;
  diagnostics.error({},
                    fmt::format("--within-days asks how long the whole run of {} takes, which has no length",
                                points.front().experiment.name),
                    "give [training] tokens");
  return invocation.refuse(diagnostics);
}

void set_exit_code(const std::vector<planner::SweepOutcome>& outcomes, const CompileOptions& options,
                   const SweepFiles& files, Invocation& invocation) {
  const bool no_answer = options.within_days &&
                         !planner::fewest_devices_within(outcomes, *options.within_days * seconds_per_day);
  if (files.count() == 0 || no_answer) invocation.exit_code = exit_answer_is_no;
}

bool run(const CompileOptions& options, Invocation& invocation) {
  if (const auto problem = specs::no_folder(options.folder); problem.has_errors())
    return invocation.refuse(problem);
  const auto points =
      specs::read_sweep(options.input.path, options.input.settings, specs::import_hugging_face);
  if (!points) return invocation.refuse(points.diagnostics);
  invocation.print(points.diagnostics);
  if (options.within_days && points->front().experiment.training.tokens <= 0)
    return refuse_without_tokens(*points, invocation);
  SweepFiles files(options, *points);
  std::size_t done = 0;
  planner::SweepRun sweep{std::thread::hardware_concurrency(),
                          [&](std::size_t point) { return files.made_before(point); },
                          [&](std::size_t point, const planner::SweepOutcome& outcome) {
                            invocation.err << fmt::format("\r{} points planned", ++done) << std::flush;
                            if (const specs::Plan* plan = planner::plan_of(outcome))
                              files.write(point, *plan);
                          }};
  const StopOnSignal stop;
  const auto outcomes = planner::run_sweep(*points, sweep, stop.wanted());
  if (done > 0) invocation.err << '\n';
  invocation.print(
      planner::sweep_report(outcomes, {points->front().experiment.name, files.files(), options.within_days}));
  if (files.failures().has_errors()) {
    invocation.print(files.failures());
    invocation.exit_code = exit_internal;
    return false;
  }
  set_exit_code(outcomes, options, files, invocation);
  if (stop.exit_code() != 0) {
    invocation.err << fmt::format(
        "interrupted: {} of {} plans are written; the same command makes the others\n", files.count(),
        points->size());
    invocation.exit_code = stop.exit_code();
  }
  return true;
}

}  // namespace

void add_compile_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("compile", "Plan every point of [sweep]: a plan each, and one table");
  verb->footer(
      "Interrupted, it exits with 130 and keeps the finished plans; the same command then plans the others.\n"
      "Exit code 1 where no point can be planned or none is fast enough.");
  auto options = std::make_shared<CompileOptions>();
  add_experiment_input(*verb, options->input);
  verb->add_option("-o,--output", options->folder, "The folder the plans are written to")
      ->capture_default_str();
  verb->add_flag("--anew", options->anew,
                 "Plan every point again, also those whose plan is in the folder already");
  verb->add_option("--within-days", options->within_days,
                   "Say which point trains [training] tokens in this time with the fewest devices")
      ->type_name("DAYS")
      ->check(CLI::Range(1e-3, 1e6));
  add_format_option(*verb, invocation);
  verb->callback([options, &invocation] { run(*options, invocation); });
}

}  // namespace cli
