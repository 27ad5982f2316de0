// published_check FILE.csv [bounds]                                                     step times
// published_check --memory POINTS.csv [--by-rank RANKS.csv] [--points] [bounds]         memory; --points
// prints each Prices with the constants as they are. Exit 0 where all bounds hold, 1 where one does not or a
// row cannot be priced, 2 bad usage or file.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/published/fit.h"
#include "tests/published/measures.h"
#include "tests/published/published_memory.h"
#include "tests/published/read_runs.h"

namespace {

/// Given on the command line; where any is, they take the place of all built-in bounds.
struct Bounds {
  std::optional<double> mean, worst, tau, coverage, tail;
  bool any() const { return mean || worst || tau || coverage || tail; }
};

struct Options {
  std::string runs, memory, by_rank;
  bool points = false;
  Bounds bounds;
};

std::string shown(double value, bool present) {
  if (!present) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

/// Share of the measurements inside the 80 % interval, mean over families.
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

void print_stand_ins(const std::vector<published::PublishedRun>& runs) {
  std::set<std::string> said;
  for (const auto& run : runs) {
    if (!run.stack_stand_in.empty())
      said.insert((run.experiment.training.stack.empty() ? "no stack named"
                                                         : "stack " + run.experiment.training.stack) +
                  ": no constants of its own; priced with those of " + run.stack_stand_in);
    if (!run.device_stand_in.empty())
      said.insert("device " + run.device + " is not in the catalog; priced as " + run.device_stand_in);
  }
  for (const std::string& line : said) std::printf("%s\n", line.c_str());
}

/// Runs whose price is no positive number leave the set with a reason.
void drop_unpriceable(published::RunSet& set) {
  published::RunPricer pricer(set.runs);
  const std::vector<double> prices = pricer.price_all(cost_models::ConstantTable::built_in());
  std::vector<published::PublishedRun> kept;
  for (std::size_t i = 0; i < set.runs.size(); ++i) {
    if (std::isfinite(prices[i]) && prices[i] > 0)
      kept.push_back(std::move(set.runs[i]));
    else
      set.unpriced.emplace_back(set.runs[i].id, "its sizes give no finite price");
  }
  set.runs = std::move(kept);
}

int check_runs(const Options& options) {
  published::RunSet set = published::read_runs(options.runs);
  drop_unpriceable(set);
  published::RunPricer pricer(set.runs);
  const std::vector<double> predicted = pricer.price_all(cost_models::ConstantTable::built_in());
  const auto families =
      published::family_errors(set.runs, predicted, [](const published::PublishedRun&) { return true; });
  const auto order = published::rank_order(set.runs, predicted, false);
  print_stand_ins(set.runs);
  for (const auto& [name, errors] : families) {
    std::printf("%-36s %4zu  mean %5.2f %%  worst %6.2f %%  bias %+6.2f %%", name.c_str(), errors.rows,
                100 * errors.mean, 100 * errors.worst, 100 * errors.bias);
    if (order.contains(name)) std::printf("  tau %5.2f", order.at(name));
    std::printf("\n");
  }
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  const bool any = !families.empty();
  const double mean = published::mean_over_families(families);
  const auto worst = published::worst_family(families);
  const double inside = coverage(pricer, predicted);
  const double tau = published::mean_of(order);
  bool pass = set.unpriced.empty();
  const Bounds& bounds = options.bounds;
  for (const published::Measure& measure : published::measures_of(set.runs, predicted)) {
    std::printf("%s\n", published::line_of(measure, /*with_bound=*/!bounds.any()).c_str());
    pass &= bounds.any() || measure.holds();
  }
  pass &=
      !any || ((!bounds.mean || mean <= *bounds.mean) && (!bounds.worst || worst.second <= *bounds.worst) &&
               (!bounds.coverage || inside >= *bounds.coverage));
  pass &= order.empty() || !bounds.tau || tau >= *bounds.tau;
  if (set.left_out > 0)
    std::printf("left out: %zu rows that are not usable = 1 of confidence a or b\n", set.left_out);
  std::printf(
      "coverage: of these rows by the interval around their prediction; script/accuracy tells that of "
      "families left out of the fit\n");
  std::printf("rows with identical inputs deviate %.2f %% from their median: the floor\n",
              100 * set.noise.mean_deviation);
  std::printf("published_check: rows %zu families %zu F mean %s %% worst %s %% tau %s coverage %s %% %s\n",
              set.runs.size(), families.size(), shown(100 * mean, any).c_str(),
              shown(100 * worst.second, any).c_str(), shown(tau, !order.empty()).c_str(),
              shown(100 * inside, any).c_str(), pass ? "PASS" : "FAIL");
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

struct FitAnswers {
  std::size_t out_of_memory = 0, refused = 0, wrongly_refused = 0;
  /// At least seven of eight runs out of memory do not fit, every measured one does.
  bool hold() const { return wrongly_refused == 0 && refused * 8 >= out_of_memory * 7; }
  void add(const published::MemoryPoint& point) {
    const bool out = point.out_of_memory();
    out_of_memory += out ? 1 : 0;
    refused += out && !point.fits() ? 1 : 0;
    wrongly_refused += !out && !point.fits() ? 1 : 0;
    if (out == point.fits())
      std::printf("said %s: %s %.1f of %.1f GiB\n", out ? "to fit" : "not to fit", point.id.c_str(),
                  point.total_gib, point.usable_gib);
  }
};

int check_memory(const Options& options) {
  const published::MemorySet set = published::read_memory_points(options.memory);
  Errors all, reserved, smi;
  std::map<std::string, Errors> families;
  FitAnswers answers;
  std::set<std::string> counted;
  for (const published::MemoryPoint& point : set.points) {
    answers.add(point);
    if (point.out_of_memory()) continue;
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
  const Bounds& bounds = options.bounds;
  bool pass = set.unpriced.empty() && answers.hold();
  bool built_in =
      report("all measured points", all, bounds.mean.value_or(0.025), bounds.tail.value_or(0.075), 0.95);
  built_in &= report("peak_reserved", reserved, 0.025, 0.10, 0.95);
  built_in &= report("nvidia_smi", smi, 0.035, 0.075, 0.95);
  if (!options.by_rank.empty()) {
    Errors ranks;
    for (const published::RankError& error : published::rank_errors(options.by_rank, set))
      ranks.add(error.error);
    built_in &= report("peak allocated of every rank", ranks, 0.003, 0.01, 1);
  }
  for (const auto& [id, reason] : set.unpriced)
    std::printf("not priced: %s: %s\n", id.c_str(), reason.c_str());
  const bool any = !all.values.empty();
  pass &= bounds.any() ? !any || ((!bounds.mean || all.mean() <= *bounds.mean) &&
                                  (!bounds.tail || all.quantile(0.95) <= *bounds.tail) &&
                                  (!bounds.worst || all.quantile(1) <= *bounds.worst))
                       : built_in;
  std::printf("published_check: memory rows %zu mean %s %% p95 %s %% worst %s %% oom %zu/%zu %s\n",
              all.values.size(), shown(100 * all.mean(), any).c_str(),
              shown(100 * all.quantile(0.95), any).c_str(), shown(100 * all.quantile(1), any).c_str(),
              answers.refused, answers.out_of_memory, pass ? "PASS" : "FAIL");
  return pass ? 0 : 1;
}

int usage(const std::string& problem) {
  if (!problem.empty()) std::fprintf(stderr, "published_check: %s\n", problem.c_str());
  std::fprintf(
      stderr,
      "published_check FILE.csv [--mean PERCENT] [--worst PERCENT] [--tau T] [--coverage PERCENT]\n"
      "published_check --memory POINTS.csv [--by-rank RANKS.csv] [--points] [--mean PERCENT] [--p95 PERCENT] "
      "[--worst PERCENT]\n"
      "--mean and --worst are of the families' mean errors; given bounds take the place of the built-in "
      "ones\n");
  return 2;
}

std::optional<double> bound_of(const std::string& text, double scale) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value / scale;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> paths{{"--memory", &options.memory},
                                                  {"--by-rank", &options.by_rank}};
  const std::map<std::string, std::optional<double>*> bounds{{"--mean", &options.bounds.mean},
                                                             {"--worst", &options.bounds.worst},
                                                             {"--tau", &options.bounds.tau},
                                                             {"--coverage", &options.bounds.coverage},
                                                             {"--p95", &options.bounds.tail}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") return usage({}), 0;
    if (argument == "--points") {
      options.points = true;
    } else if (paths.contains(argument) || bounds.contains(argument)) {
      if (i + 1 == argc) return usage(argument + " needs a value");
      const std::string value = argv[++i];
      if (paths.contains(argument)) {
        *paths.at(argument) = value;
        continue;
      }
      *bounds.at(argument) = bound_of(value, argument == "--tau" ? 1 : 100);
      if (!*bounds.at(argument)) return usage(argument + ": \"" + value + "\" is no number");
    } else if (argument.starts_with("--")) {
      return usage("unknown option " + argument);
    } else if (!options.runs.empty()) {
      return usage("one FILE.csv at a time");
    } else {
      options.runs = argument;
    }
  }
  if (options.runs.empty() == options.memory.empty()) return usage("give FILE.csv or --memory POINTS.csv");
  try {
    return options.memory.empty() ? check_runs(options) : check_memory(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "published_check: %s\n", error.what());
    return 2;
  }
}
