// dsplan compile SPEC: a plan for each point of [sweep], and one table.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/dsplan/inputs.h"
#include "cli/dsplan/stop_on_signal.h"
#include "cli/dsplan/verbs/verbs.h"
#include "planner/questions/sweep.h"
#include "planner/report/sweep_report.h"
#include "specs/interchange/hugging_face.h"
#include "specs/interchange/json_config.h"
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

/// Whether a file is a plan of the experiment of that name, whichever program made it.
bool is_plan_of(const std::string& file, const std::string& experiment) {
  const specs::Result<std::string> text = specs::read_text_file(file);
  if (!text) return false;
  const auto plan = specs::parse_json_object(*text, file);
  if (!plan || !plan->contains("format_version") || !plan->contains("inputs")) return false;
  const auto& inputs = plan->at("inputs");
  return inputs.is_object() && inputs.value("name", nlohmann::json()) == experiment;
}

/// Files that stand where plans are to be written and are none of this sweep's.
specs::Diagnostics files_in_the_way(const CompileOptions& options,
                                    const std::vector<specs::SweepPoint>& points) {
  specs::Diagnostics diagnostics;
  for (std::size_t point = 0; point < points.size(); ++point) {
    const std::string file = file_of(options, point, points.size());
    std::error_code failure;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file, failure))) continue;
    if (!is_plan_of(file, points[point].experiment.name))
      diagnostics.error({},
                        fmt::format("{} is no plan of {}, and a plan would replace it", file,
                                    points[point].experiment.name),
                        "move it, or give another folder: --output FOLDER");
  }
  return diagnostics;
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
    if (!plan) return plan;
    files_[point] = std::move(file);
    ++reused_;
    return plan;
  }

  void write(std::size_t point, const specs::Plan& plan) {
    const std::string file = file_of(options_, point, points_.size());
    const specs::Diagnostics written = specs::write_text_file(file, specs::write_plan(plan));
    failures_.append(written);
    if (!written.has_errors()) files_[point] = file;
  }

  const std::vector<std::string>& files() const { return files_; }
  std::size_t reused() const { return reused_; }
  const specs::Diagnostics& failures() const { return failures_; }
  std::ptrdiff_t count() const {
    return std::count_if(files_.begin(), files_.end(), [](const std::string& file) { return !file.empty(); });
  }

 private:
  const CompileOptions& options_;
  const std::vector<specs::SweepPoint>& points_;
  std::vector<std::string> files_;  ///< one a point: threads write to entries of their own
  std::atomic<std::size_t> reused_ = 0;
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

/// "7/12 points": planned now or found in the folder, of all; over the one printed before.
void print_progress(std::size_t planned, const SweepFiles& files, std::size_t points, std::ostream& err) {
  err << fmt::format("\r{}/{} points", planned + files.reused(), points) << std::flush;
}

/// What an interruption left, and how to go on.
void print_remaining(const std::vector<specs::SweepPoint>& points,
                     const std::vector<planner::SweepOutcome>& outcomes, const SweepFiles& files,
                     std::ostream& err) {
  constexpr std::size_t most_named = 6;
  std::vector<std::string> remaining;
  for (std::size_t point = 0; point < points.size(); ++point)
    if (!outcomes[point].outcome && !outcomes[point].diagnostics.has_errors())
      remaining.push_back(fmt::format("  {}", fmt::join(points[point].settings, ", ")));
  err << fmt::format(
      "interrupted: {} of {} plans are written, {} points remain; the same command makes them\n",
      files.count(), points.size(), remaining.size());
  const std::size_t named = std::min(remaining.size(), most_named);
  for (std::size_t point = 0; point < named; ++point) err << remaining[point] << '\n';
  if (named < remaining.size()) err << fmt::format("  … and {} more\n", remaining.size() - named);
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
  if (const auto foreign = files_in_the_way(options, *points); foreign.has_errors())
    return invocation.refuse(foreign);
  SweepFiles files(options, *points);
  std::size_t done = 0;
  planner::SweepRun sweep{std::thread::hardware_concurrency(),
                          [&](std::size_t point) { return files.made_before(point); },
                          [&](std::size_t point, const planner::SweepOutcome& outcome) {
                            if (const specs::Plan* plan = planner::plan_of(outcome))
                              files.write(point, *plan);
                            print_progress(++done, files, points->size(), invocation.err);
                          }};
  const StopOnSignal stop;
  const auto outcomes = planner::run_sweep(*points, sweep, stop.wanted());
  if (done > 0) {
    print_progress(done, files, points->size(), invocation.err);
    invocation.err << '\n';
  }
  invocation.print(
      planner::sweep_report(outcomes, {points->front().experiment.name, files.files(), options.within_days}));
  if (files.failures().has_errors()) {
    invocation.print(files.failures());
    invocation.exit_code = exit_internal;
    return false;
  }
  set_exit_code(outcomes, options, files, invocation);
  if (stop.exit_code() != 0) {
    print_remaining(*points, outcomes, files, invocation.err);
    invocation.exit_code = stop.exit_code();
  }
  return true;
}

}  // namespace

void add_compile_verb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("compile", "Plan every point of [sweep]: a plan each, and one table");
  verb->footer(
      "Interrupted, it exits with 130 or 143 and keeps the finished plans; the same command then plans the "
      "others.\n"
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
