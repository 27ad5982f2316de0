// accuracy RUNS.csv [--refit FOLDER] [--cold] [--families] [--rows PREFIX]
// The accuracy of the step-time model on the published record: the constants as they are, then fitted without
// each family, then five-fold over rows. `--refit` fits all rows and writes the constants' files in FOLDER
// anew.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "tests/published/constants_file.h"
#include "tests/published/fit.h"
#include "tests/published/measures.h"
#include "tests/published/read_runs.h"

namespace {

using cost_models::ConstantTable;
using published::Families;
using published::PublishedRun;

bool is_vtrain(const PublishedRun& run) { return run.family.starts_with("vtrain"); }
bool all_runs(const PublishedRun&) { return true; }
bool dense_16_bit(const PublishedRun& run) { return !run.mixture && !run.low_precision && !is_vtrain(run); }
bool dense_low(const PublishedRun& run) { return !run.mixture && run.low_precision; }
bool mixture(const PublishedRun& run) { return run.mixture; }

void print_measure(const char* name, double value, const char* bar) {
  std::printf("%-68s %6.2f %%   bar %s\n", name, 100 * value, bar);
}

void print_table(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted, bool families) {
  const Families all = published::family_errors(runs, predicted, all_runs);
  const auto order = published::rank_order(runs, predicted, false);
  const auto layouts = published::rank_order(runs, predicted, true);
  const auto regrets = published::regret(runs, predicted);
  if (families)
    for (const auto& [name, errors] : all) {
      std::printf("  %-34s %4zu  mean %5.1f %%  worst %6.1f %%  bias %+6.1f %%", name.c_str(), errors.rows,
                  100 * errors.mean, 100 * errors.worst, 100 * errors.bias);
      if (order.contains(name)) std::printf("  tau %5.2f", order.at(name));
      if (layouts.contains(name)) std::printf("  layouts %5.2f", layouts.at(name));
      if (regrets.contains(name)) std::printf("  regret %4.1f %%", 100 * regrets.at(name));
      std::printf("\n");
    }
  const Families dense = published::family_errors(runs, predicted, dense_16_bit);
  const auto worst_dense = published::worst_family(dense);
  print_measure("mean over families of the mean absolute error", published::mean_over_families(all), "5");
  print_measure("dense 16-bit without vtrain, mean over families", published::mean_over_families(dense), "4");
  print_measure(("  worst family: " + worst_dense.first).c_str(), worst_dense.second, "9");
  print_measure("dense 8- and 4-bit, mean over families",
                published::mean_over_families(published::family_errors(runs, predicted, dense_low)), "4");
  print_measure("mixtures, mean over families",
                published::mean_over_families(published::family_errors(runs, predicted, mixture)), "6");
  const auto family = [&all](const char* name) {
    const auto found = all.find(name);
    return found == all.end() ? published::FamilyErrors{} : found->second;
  };
  print_measure("korthikanti22, mean", family("korthikanti22").mean, "2.5");
  print_measure("korthikanti22, worst", family("korthikanti22").worst, "6");
  print_measure("vtrain-multi-node", family("vtrain-multi-node").mean, "8");
  print_measure("vtrain-single-node", family("vtrain-single-node").mean, "7");
  std::printf("%-68s %6.3f     bar 0.90 (%zu families)\n", "rank order, mean over families",
              published::mean_of(order), order.size());
  std::printf("%-68s %6.3f     bar 0.75 (%zu families)\n", "rank order, same device type",
              published::mean_of(layouts), layouts.size());
  double worst_regret = 0;
  for (const auto& [name, value] : regrets) worst_regret = std::max(worst_regret, value);
  print_measure("regret, mean over families", published::mean_of(regrets), "1.5");
  print_measure("regret, worst family", worst_regret, "5");
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
void print_interval(const published::RunPricer& pricer, const std::vector<double>& predicted) {
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
  print_measure("80 % interval: left-out measurements inside, mean over families", coverage, "75-85");
  print_measure("80 % interval: median half width", std::exp(widths[widths.size() / 2]) - 1, "15");
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = nullptr;
  const char* refit = nullptr;
  const char* rows = nullptr;
  const char* folder = nullptr;
  bool cold = false, families = false, quick = false;
  int iterations = 30;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--refit" && i + 1 < argc)
      refit = argv[++i];
    else if (argument == "--rows" && i + 1 < argc)
      rows = argv[++i];
    else if (argument == "--iterations" && i + 1 < argc)
      iterations = std::atoi(argv[++i]);
    else if (argument == "--constants" && i + 1 < argc)
      folder = argv[++i];
    else if (argument == "--cold")
      cold = true;
    else if (argument == "--families")
      families = true;
    else if (argument == "--quick")
      quick = true;
    else
      path = argv[i];
  }
  if (path == nullptr) {
    std::fprintf(stderr,
                 "accuracy RUNS.csv [--refit FOLDER [--cold]] [--constants FOLDER] [--families] [--quick] "
                 "[--rows FAMILY]\n");
    return 2;
  }
  const published::RunSet set = published::read_runs(path);
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  ConstantTable constants = folder == nullptr ? ConstantTable::built_in() : published::read_constants(folder);
  if (cold)
    for (std::size_t i = 0; i < constants.constants().size(); ++i)
      constants.set(i, constants.constants()[i].prior);
  published::RunPricer pricer(set.runs);
  if (refit != nullptr) {
    published::FitOptions options;
    options.iterations = iterations;
    options.progress = [](int iteration, double objective) {
      std::printf("fit %2d  %.4f\n", iteration, objective);
    };
    published::fit(pricer, published::family_weights(set.runs, std::vector<bool>(set.runs.size(), true)),
                   constants, options);
    published::write_constants(constants, refit);
  }
  const std::vector<double> predicted = pricer.price_all(constants);
  if (rows != nullptr)
    for (std::size_t i = 0; i < set.runs.size(); ++i)
      if (set.runs[i].family.starts_with(rows))
        std::printf("%-100s %9.4f %9.4f %+6.1f %%\n", set.runs[i].id.c_str(), set.runs[i].step_seconds,
                    predicted[i], 100 * (predicted[i] / set.runs[i].step_seconds - 1));
  std::size_t fitted = 0;
  for (const cost_models::Constant& constant : constants.constants()) fitted += constant.spread > 0 ? 1 : 0;
  std::printf("%zu distinct rows, %zu fitted constants, repeated rows deviate %.2f %% from their median\n",
              set.runs.size(), fitted, 100 * set.noise.mean_deviation);
  print_table(set.runs, predicted, families);
  if (quick) return 0;
  const std::vector<double> left_out_predictions = without_each_family(pricer, constants);
  const Families one_out = published::family_errors(set.runs, left_out_predictions, all_runs);
  if (families)
    for (const auto& [name, errors] : one_out)
      std::printf("  left out %-34s mean %5.1f %%  bias %+6.1f %%\n", name.c_str(), 100 * errors.mean,
                  100 * errors.bias);
  print_measure("leave one family out, mean over families", published::mean_over_families(one_out), "9");
  print_measure("leave one family out, median over families", published::median_over_families(one_out),
                "6.5");
  print_interval(pricer, left_out_predictions);
  print_measure("five-fold over rows, mean over families",
                published::mean_over_families(
                    published::family_errors(set.runs, five_fold(pricer, constants), all_runs)),
                "6");
  return 0;
}
