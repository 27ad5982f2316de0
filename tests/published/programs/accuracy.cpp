// accuracy RUNS.csv: the accuracy of the step-time model on the published record. The constants as they are,
// then fitted without each family, then five-fold over rows. `--refit FOLDER` fits all rows and writes the
// constants' files of the folder anew; `--page` draws the plots; `--table-in` and `--constants-in` write the
// tables of documents.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/published/accuracy_page.h"
#include "tests/published/constants_file.h"
#include "tests/published/documents.h"
#include "tests/published/fit.h"
#include "tests/published/measures.h"
#include "tests/published/published_memory.h"
#include "tests/published/read_runs.h"

namespace {

using cost_models::ConstantTable;
using published::Families;
using published::Measure;
using published::PublishedRun;

struct Options {
  std::string runs, refit, rows, folder, memory, page, constants_document;
  std::vector<std::string> documents;
  bool cold = false, families = false, quick = false;
};

bool all_runs(const PublishedRun&) { return true; }

void print_families(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted) {
  const Families all = published::family_errors(runs, predicted, all_runs);
  const auto order = published::rank_order(runs, predicted, false);
  const auto layouts = published::rank_order(runs, predicted, true);
  const auto regrets = published::regret(runs, predicted);
  for (const auto& [name, errors] : all) {
    std::printf("  %-34s %4zu  mean %5.1f %%  worst %6.1f %%  bias %+6.1f %%", name.c_str(), errors.rows,
                100 * errors.mean, 100 * errors.worst, 100 * errors.bias);
    if (order.contains(name)) std::printf("  tau %5.2f", order.at(name));
    if (layouts.contains(name)) std::printf("  layouts %5.2f", layouts.at(name));
    if (regrets.contains(name)) std::printf("  regret %4.1f %%", 100 * regrets.at(name));
    std::printf("\n");
  }
}

std::vector<bool> selection(const std::vector<PublishedRun>& runs, auto&& keep) {
  std::vector<bool> selected(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) selected[i] = keep(i);
  return selected;
}

/// Of a family of hundreds of rows, one in six is enough for a fit: families weigh the same, not rows.
bool thinned(const std::vector<PublishedRun>& runs, std::size_t i) {
  return runs[i].family == "vtrain-single-node" && i % 6 != 0;
}

/// Predictions of each run by constants fitted without its group.
std::vector<double> left_out(published::RunPricer& pricer, const ConstantTable& start,
                             const std::vector<int>& group_of_run, int groups, int iterations) {
  const auto& runs = pricer.runs();
  std::vector<double> predicted(runs.size());
  for (int group = 0; group < groups; ++group) {
    const auto weights = published::family_weights(
        runs, selection(runs, [&](std::size_t i) { return group_of_run[i] != group && !thinned(runs, i); }));
    ConstantTable constants = start;
    published::FitOptions options;
    options.iterations = iterations;
    options.tolerance = 2e-3;
    published::fit(pricer, weights, constants, options);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (group_of_run[i] == group) predicted[i] = pricer.price(i, constants);
  }
  return predicted;
}

std::vector<double> without_each_family(published::RunPricer& pricer, const ConstantTable& start) {
  const auto& runs = pricer.runs();
  std::set<std::string> names;
  for (const PublishedRun& run : runs) names.insert(run.family);
  std::vector<int> group(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    group[i] = static_cast<int>(std::distance(names.begin(), names.find(runs[i].family)));
  return left_out(pricer, start, group, static_cast<int>(names.size()), 2);
}

std::vector<double> five_fold(published::RunPricer& pricer, const ConstantTable& start) {
  const auto& runs = pricer.runs();
  std::vector<int> group(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    group[i] = static_cast<int>(std::hash<std::string>{}(runs[i].identity) % 5);
  return left_out(pricer, start, group, 5, 3);
}

/// Half widths that would cover 80 % of each kind's left-out rows, each family weighing the same, and the
/// coverage that the constants in use give.
std::vector<Measure> interval_measures(const published::RunPricer& pricer,
                                       const std::vector<double>& predicted) {
  std::map<std::string, double> family_rows;
  for (const PublishedRun& run : pricer.runs()) ++family_rows[run.family];
  std::map<std::string, std::vector<std::pair<double, double>>> kinds;  // |log error| and weight
  std::map<std::string, double> inside;
  std::vector<double> widths;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const PublishedRun& run = pricer.runs()[i];
    const double error = std::abs(std::log(predicted[i] / run.step_seconds));
    const double weight = 1 / family_rows[run.family];
    kinds[run.mixture         ? "mixture"
          : run.low_precision ? "low_precision"
                              : "dense"]
        .emplace_back(error, weight);
    inside[run.family] += error <= pricer.interval_half_width(i) ? weight : 0;
    widths.push_back(pricer.interval_half_width(i));
  }
  for (auto& [kind, errors] : kinds) {
    std::sort(errors.begin(), errors.end());
    double total = 0, sum = 0, width = 0;
    for (const auto& [error, weight] : errors) total += weight;
    for (const auto& [error, weight] : errors) {
      sum += weight;
      width = error;
      if (sum >= 0.8 * total) break;
    }
    std::printf("  left-out rows: 80 %% of %-14s lie within %.3f of the logarithm\n", kind.c_str(), width);
  }
  double coverage = 0;
  for (const auto& [family, share] : inside) coverage += share / static_cast<double>(inside.size());
  std::sort(widths.begin(), widths.end());
  Measure inside_it{"80 % interval: left-out measurements inside", coverage, 0.85, false, true, {}};
  inside_it.least = 0.75;
  return {
      inside_it,
      {"80 % interval: median half width", std::exp(widths[widths.size() / 2]) - 1, 0.15, false, true, {}}};
}

/// What follows from fits that leave measurements out.
std::vector<Measure> left_out_measures(published::RunPricer& pricer, const ConstantTable& constants,
                                       bool families) {
  const auto& runs = pricer.runs();
  const std::vector<double> predictions = without_each_family(pricer, constants);
  const Families one_out = published::family_errors(runs, predictions, all_runs);
  if (families)
    for (const auto& [name, errors] : one_out)
      std::printf("  left out %-34s mean %5.1f %%  bias %+6.1f %%\n", name.c_str(), 100 * errors.mean,
                  100 * errors.bias);
  std::vector<Measure> measures{
      {"leave one family out, mean over families",
       published::mean_over_families(one_out),
       0.09,
       false,
       true,
       {}},
      {"leave one family out, median over families",
       published::median_over_families(one_out),
       0.065,
       false,
       true,
       {}},
      {"five-fold over rows, mean over families",
       published::mean_over_families(published::family_errors(runs, five_fold(pricer, constants), all_runs)),
       0.06,
       false,
       true,
       {}}};
  for (Measure& measure : interval_measures(pricer, predictions)) measures.push_back(std::move(measure));
  return measures;
}

std::vector<published::MemoryPoint> memory_points(const Options& options) {
  return options.memory.empty() ? std::vector<published::MemoryPoint>{}
                                : published::read_memory_points(options.memory).points;
}

void write_documents(const Options& options, const std::vector<Measure>& measures,
                     const ConstantTable& constants) {
  for (const std::string& document : options.documents)
    published::replace_block(document, "script/accuracy: closing table", published::markdown_of(measures));
  if (!options.constants_document.empty())
    published::replace_block(options.constants_document, "script/accuracy: constants",
                             published::markdown_of(constants));
}

std::optional<Options> options_of(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> values{
      {"--refit", &options.refit},      {"--rows", &options.rows},
      {"--constants", &options.folder}, {"--memory", &options.memory},
      {"--page", &options.page},        {"--constants-in", &options.constants_document}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (values.contains(argument) && has_value)
      *values.at(argument) = argv[++i];
    else if (argument == "--table-in" && has_value)
      options.documents.emplace_back(argv[++i]);
    else if (argument == "--cold")
      options.cold = true;
    else if (argument == "--families")
      options.families = true;
    else if (argument == "--quick")
      options.quick = true;
    else if (argument.starts_with("--") || !options.runs.empty())
      return std::nullopt;
    else
      options.runs = argument;
  }
  if (options.runs.empty()) return std::nullopt;
  return options;
}

void refit(published::RunPricer& pricer, ConstantTable& constants, const std::string& folder) {
  published::FitOptions fit;
  fit.iterations = 30;
  fit.progress = [](int iteration, double objective) {
    std::printf("fit %2d  %.4f\n", iteration, objective);
  };
  published::fit(pricer,
                 published::family_weights(pricer.runs(), std::vector<bool>(pricer.runs().size(), true)),
                 constants, fit);
  published::write_constants(constants, folder);
}

void print_rows(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted,
                const std::string& prefix) {
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].family.starts_with(prefix))
      std::printf("%-100s %9.4f %9.4f %+6.1f %%\n", runs[i].id.c_str(), runs[i].step_seconds, predicted[i],
                  100 * (predicted[i] / runs[i].step_seconds - 1));
}

int run(const Options& options) {
  const published::RunSet set = published::read_runs(options.runs);
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  ConstantTable constants =
      options.folder.empty() ? ConstantTable::built_in() : published::read_constants(options.folder);
  if (options.cold)
    for (std::size_t i = 0; i < constants.constants().size(); ++i)
      constants.set(i, constants.constants()[i].prior);
  published::RunPricer pricer(set.runs);
  if (!options.refit.empty()) refit(pricer, constants, options.refit);
  const std::vector<double> predicted = pricer.price_all(constants);
  if (!options.rows.empty()) print_rows(set.runs, predicted, options.rows);
  std::size_t fitted = 0;
  for (const cost_models::Constant& constant : constants.constants()) fitted += constant.spread > 0 ? 1 : 0;
  std::printf("%zu distinct rows, %zu fitted constants, repeated rows deviate %.2f %% from their median\n",
              set.runs.size(), fitted, 100 * set.noise.mean_deviation);
  if (options.families) print_families(set.runs, predicted);
  std::vector<Measure> measures = published::measures_of(set.runs, predicted);
  measures.push_back({"constants fitted", static_cast<double>(fitted), 100, false, false, {}});
  if (!options.quick)
    for (Measure& measure : left_out_measures(pricer, constants, options.families))
      measures.push_back(std::move(measure));
  for (const Measure& measure : measures) std::printf("%s\n", published::line_of(measure).c_str());
  if (!options.page.empty()) {
    std::ofstream(options.page) << published::accuracy_page(measures, set.runs, predicted,
                                                            memory_points(options));
    std::printf("plots: %s\n", options.page.c_str());
  }
  write_documents(options, measures, constants);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = options_of(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "accuracy RUNS.csv [--families] [--quick] [--rows FAMILY] [--constants FOLDER] [--refit "
                 "FOLDER [--cold]]\n"
                 "         [--memory POINTS.csv] [--page PAGE.html] [--table-in DOCUMENT.md] [--constants-in "
                 "DOCUMENT.md]\n");
    return 2;
  }
  try {
    return run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "accuracy: %s\n", error.what());
    return 2;
  }
}
