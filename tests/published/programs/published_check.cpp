// published_check FILE.csv [--mean P] [--worst P]                 step times, with the constants as they are
// published_check --memory POINTS.csv [--by-rank RANKS.csv] [--points]   memory; --points prints each
// Bounds in per cent. Exit 0 where all hold, 1 where one does not or a row cannot be priced, 2 bad usage or
// file.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <set>
#include <string>

#include "tests/published/fit.h"
#include "tests/published/measures.h"
#include "tests/published/published_memory.h"
#include "tests/published/read_runs.h"

namespace {

/// Bounds on a family's mean absolute error; other families are held to the means over families.
struct FamilyBound {
  const char* family;
  double mean;
  double worst;  ///< of one row; 0: none
};
constexpr FamilyBound family_bounds[] = {
    {"korthikanti22", 0.025, 0.06}, {"vtrain-multi-node", 0.08, 0}, {"vtrain-single-node", 0.07, 0}};

struct Options {
  std::string runs, memory, by_rank;
  bool points = false;
  double mean = 0.05;
  double worst = 0;  ///< of a family; 0: none
};

std::string shown(double value, bool present) {
  if (!present) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

double coverage(const published::RunPricer& pricer, const std::vector<double>& predicted) {
  std::map<std::string, std::pair<double, double>> inside;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const auto& run = pricer.runs()[i];
    auto& [hits, rows] = inside[run.family];
    hits += std::abs(std::log(predicted[i] / run.step_seconds)) <= pricer.interval_half_width(i) ? 1 : 0;
    ++rows;
  }
  double sum = 0;
  for (const auto& [family, counts] : inside) sum += counts.first / counts.second;
  return inside.empty() ? 0 : sum / static_cast<double>(inside.size());
}

int check_runs(const Options& options) {
  const published::RunSet set = published::read_runs(options.runs);
  published::RunPricer pricer(set.runs);
  const std::vector<double> predicted = pricer.price_all(cost_models::ConstantTable::built_in());
  const auto families =
      published::family_errors(set.runs, predicted, [](const published::PublishedRun&) { return true; });
  const auto order = published::rank_order(set.runs, predicted, false);
  bool pass = set.unpriced.empty();
  std::set<std::string> stand_ins;
  for (const auto& run : set.runs)
    if (!run.exact_stack) stand_ins.insert(run.experiment.training.stack);
  for (const std::string& stack : stand_ins)
    std::printf("stack %s has no constants of its own; priced with megatron-core's\n", stack.c_str());
  for (const auto& [name, errors] : families) {
    std::printf("%-36s %4zu  mean %5.2f %%  worst %6.2f %%  bias %+6.2f %%", name.c_str(), errors.rows,
                100 * errors.mean, 100 * errors.worst, 100 * errors.bias);
    if (order.contains(name)) std::printf("  tau %5.2f", order.at(name));
    for (const FamilyBound& bound : family_bounds)
      if (name == bound.family) {
        const bool holds = errors.mean <= bound.mean && (bound.worst == 0 || errors.worst <= bound.worst);
        std::printf("  bound %.1f %% %s", 100 * bound.mean, holds ? "holds" : "FAILS");
        pass &= holds;
      }
    std::printf("\n");
  }
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  const double mean = published::mean_over_families(families);
  const auto worst = published::worst_family(families);
  pass &= families.empty() || mean <= options.mean;
  pass &= options.worst == 0 || worst.second <= options.worst;
  std::printf("rows with identical inputs deviate %.2f %% from their median: the floor\n",
              100 * set.noise.mean_deviation);
  const bool any = !families.empty();
  std::printf("published_check: rows %zu families %zu F mean %s %% worst %s %% tau %s coverage %s %s\n",
              set.runs.size(), families.size(), shown(100 * mean, any).c_str(),
              shown(100 * worst.second, any).c_str(),
              shown(published::mean_of(order), !order.empty()).c_str(),
              shown(100 * coverage(pricer, predicted), any).c_str(), pass ? "PASS" : "FAIL");
  return pass ? 0 : 1;
}

struct Errors {
  std::vector<double> values;
  void add(double value) { values.push_back(std::abs(value)); }
  double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }
  double quantile(double share) const {
    if (values.empty()) return 0;
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto index = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
    return sorted[std::min(index, sorted.size() - 1)];
  }
};

bool report(const char* name, const Errors& errors, double mean_bound, double tail_bound, double tail_share) {
  if (errors.values.empty()) {
    std::printf("%-44s -\n", name);
    return true;
  }
  const double tail = errors.quantile(tail_share);
  const bool holds = errors.mean() <= mean_bound && tail <= tail_bound;
  std::printf("%-44s n %4zu  mean %5.2f %%  %s %5.2f %%  bounds %.1f / %.1f %% %s\n", name,
              errors.values.size(), 100 * errors.mean(), tail_share < 1 ? "p95  " : "worst", 100 * tail,
              100 * mean_bound, 100 * tail_bound, holds ? "hold" : "FAIL");
  return holds;
}

int check_memory(const Options& options) {
  const published::MemorySet set = published::read_memory_points(options.memory);
  Errors all, reserved, smi;
  std::map<std::string, Errors> families;
  std::size_t out_of_memory = 0, refused = 0, wrongly_refused = 0;
  std::set<std::string> counted;
  for (const published::MemoryPoint& point : set.points) {
    if (point.out_of_memory()) {
      ++out_of_memory;
      refused += point.fits() ? 0 : 1;
      if (point.fits())
        std::printf("said to fit: %s %.1f of %.1f GiB\n", point.id.c_str(), point.total_gib,
                    point.usable_gib);
      continue;
    }
    if (!point.fits()) {
      ++wrongly_refused;
      std::printf("said not to fit: %s %.1f of %.1f GiB\n", point.id.c_str(), point.total_gib,
                  point.usable_gib);
    }
    if (point.family == "simumax-b200" && !counted.insert(point.identity).second) continue;
    const double error = point.predicted_gib / point.measured_gib - 1;
    if (options.points)
      std::printf("%-100s %8.2f %8.2f GiB %+6.2f %%\n", point.id.c_str(), point.measured_gib,
                  point.predicted_gib, 100 * error);
    all.add(error);
    families[point.family + " " + point.kind].add(error);
    if (point.kind == "peak_reserved") reserved.add(error);
    if (point.kind == "nvidia_smi") smi.add(error);
  }
  for (const auto& [name, errors] : families)
    std::printf("%-44s n %4zu  mean %5.2f %%  p95   %5.2f %%  worst %5.2f %%\n", name.c_str(),
                errors.values.size(), 100 * errors.mean(), 100 * errors.quantile(0.95),
                100 * errors.quantile(1));
  bool pass = set.unpriced.empty() && wrongly_refused == 0 && refused * 8 >= out_of_memory * 7;
  pass &= report("all measured points", all, 0.025, 0.075, 0.95);
  pass &= report("peak_reserved", reserved, 0.025, 0.10, 0.95);
  pass &= report("nvidia_smi", smi, 0.035, 0.075, 0.95);
  if (!options.by_rank.empty()) {
    Errors ranks;
    for (const published::RankError& error : published::rank_errors(options.by_rank, set))
      ranks.add(error.error);
    pass &= report("peak allocated of every rank", ranks, 0.003, 0.01, 1);
  }
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  const bool any = !all.values.empty();
  std::printf("published_check: memory rows %zu mean %s %% p95 %s %% worst %s %% oom %zu/%zu %s\n",
              all.values.size(), shown(100 * all.mean(), any).c_str(),
              shown(100 * all.quantile(0.95), any).c_str(), shown(100 * all.quantile(1), any).c_str(),
              refused, out_of_memory, pass ? "PASS" : "FAIL");
  return pass ? 0 : 1;
}

int usage() {
  std::fprintf(stderr,
               "published_check FILE.csv [--mean PERCENT] [--worst PERCENT]\n"
               "published_check --memory POINTS.csv [--by-rank RANKS.csv] [--points]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--memory" && has_value)
      options.memory = argv[++i];
    else if (argument == "--points")
      options.points = true;
    else if (argument == "--by-rank" && has_value)
      options.by_rank = argv[++i];
    else if (argument == "--mean" && has_value)
      options.mean = std::atof(argv[++i]) / 100;
    else if (argument == "--worst" && has_value)
      options.worst = std::atof(argv[++i]) / 100;
    else if (argument.starts_with("--") || !options.runs.empty())
      return usage();
    else
      options.runs = argument;
  }
  if (options.runs.empty() == options.memory.empty()) return usage();
  try {
    return options.memory.empty() ? check_runs(options) : check_memory(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "published_check: %s\n", error.what());
    return 2;
  }
}
