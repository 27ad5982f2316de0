#include "tests/published/measures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace published {
namespace {

std::map<std::string, std::vector<std::size_t>> jobs_of(const std::vector<PublishedRun>& runs,
                                                        bool same_device) {
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < runs.size(); ++i)
    jobs[runs[i].job + (same_device ? runs[i].device : std::string{})].push_back(i);
  std::erase_if(jobs, [](const auto& job) { return job.second.size() < 3; });
  return jobs;
}

struct Sum {
  double total = 0;
  double count = 0;
};

std::map<std::string, double> means(const std::map<std::string, Sum>& sums) {
  std::map<std::string, double> result;
  for (const auto& [name, sum] : sums) result[name] = sum.total / sum.count;
  return result;
}

}  // namespace

double mean_over_families(const Families& families) {
  double sum = 0;
  for (const auto& [name, errors] : families) sum += errors.mean;
  return families.empty() ? 0 : sum / static_cast<double>(families.size());
}

double median_over_families(const Families& families) {
  std::vector<double> means_;
  for (const auto& [name, errors] : families) means_.push_back(errors.mean);
  if (means_.empty()) return 0;
  std::sort(means_.begin(), means_.end());
  return (means_[(means_.size() - 1) / 2] + means_[means_.size() / 2]) / 2;
}

std::pair<std::string, double> worst_family(const Families& families) {
  std::pair<std::string, double> worst{"", 0};
  for (const auto& [name, errors] : families)
    if (errors.mean > worst.second) worst = {name, errors.mean};
  return worst;
}

std::map<std::string, double> rank_order(const std::vector<PublishedRun>& runs,
                                         const std::vector<double>& predicted, bool same_device) {
  std::map<std::string, Sum> sums;
  for (const auto& [job, members] : jobs_of(runs, same_device)) {
    double agreement = 0;
    double pairs = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const double measured = std::log(runs[members[i]].step_seconds / runs[members[j]].step_seconds);
        if (std::abs(measured) < std::log(1.03)) continue;
        const double modelled = std::log(predicted[members[i]] / predicted[members[j]]);
        agreement += measured * modelled > 0 ? 1 : measured * modelled < 0 ? -1 : 0;
        ++pairs;
      }
    if (pairs == 0) continue;
    Sum& sum = sums[runs[members.front()].family];
    sum.total += agreement / pairs;
    ++sum.count;
  }
  return means(sums);
}

std::map<std::string, double> regret(const std::vector<PublishedRun>& runs,
                                     const std::vector<double>& predicted) {
  std::map<std::string, Sum> sums;
  for (const auto& [job, members] : jobs_of(runs, /*same_device=*/true)) {
    std::size_t chosen = members.front();
    double best = runs[chosen].step_seconds;
    for (const std::size_t member : members) {
      if (predicted[member] < predicted[chosen]) chosen = member;
      best = std::min(best, runs[member].step_seconds);
    }
    Sum& sum = sums[runs[chosen].family];
    sum.total += runs[chosen].step_seconds / best - 1;
    ++sum.count;
  }
  return means(sums);
}

std::vector<Measure> measures_of(const std::vector<PublishedRun>& runs,
                                 const std::vector<double>& predicted) {
  constexpr std::size_t enough_families = 5;
  std::vector<Measure> measures;
  const auto add = [&measures](std::string name, std::optional<double> value, double bound,
                               std::size_t families, std::string detail) -> Measure& {
    Measure& measure = measures.emplace_back();
    measure.name = std::move(name);
    measure.value = value;
    measure.bound = bound;
    measure.few = families < enough_families;
    measure.detail = std::move(detail);
    return measure;
  };
  const auto count = [](std::size_t families) { return std::to_string(families) + " families"; };
  const auto of_kind = [&](auto select) { return family_errors(runs, predicted, select); };
  const auto mean = [&](const char* name, const Families& families, double bound) -> Measure& {
    return add(name, families.empty() ? std::nullopt : std::optional(mean_over_families(families)), bound,
               families.size(), count(families.size()));
  };
  const Families all = of_kind([](const PublishedRun&) { return true; });
  const Families dense = of_kind([](const PublishedRun& run) {
    return !run.mixture && !run.low_precision && !run.family.starts_with("vtrain");
  });
  mean("mean over families of the mean absolute error", all, 0.05).few = false;
  mean("dense 16-bit without vtrain, mean over families", dense, 0.04);
  const auto worst = worst_family(dense);
  add("dense 16-bit without vtrain, worst family", dense.empty() ? std::nullopt : std::optional(worst.second),
      0.09, dense.size(), worst.first);
  mean("dense 8- and 4-bit, mean over families",
       of_kind([](const PublishedRun& run) { return !run.mixture && run.low_precision; }), 0.04);
  mean("mixtures, mean over families", of_kind([](const PublishedRun& run) { return run.mixture; }), 0.06);
  const auto of_family = [&](const std::string& family, double mean_bound, double worst_bound) {
    const auto found = all.find(family);
    const bool there = found != all.end();
    add(family + ", mean", there ? std::optional(found->second.mean) : std::nullopt, mean_bound,
        enough_families, {});
    if (worst_bound > 0)
      add(family + ", worst row", there ? std::optional(found->second.worst) : std::nullopt, worst_bound,
          enough_families, {});
  };
  of_family("korthikanti22", 0.025, 0.06);
  of_family("vtrain-multi-node", 0.08, 0);
  of_family("vtrain-single-node", 0.07, 0);
  const auto order = [&](const char* name, bool same_device, double bound) {
    const auto values = rank_order(runs, predicted, same_device);
    Measure& measure = add(name, values.empty() ? std::nullopt : std::optional(mean_of(values)), bound,
                           values.size(), count(values.size()));
    measure.at_least = true;
    measure.share = false;
  };
  order("rank order, mean over families", false, 0.90);
  order("rank order with the same device type", true, 0.75);
  const auto regrets = regret(runs, predicted);
  const auto most = std::max_element(regrets.begin(), regrets.end(), [](const auto& left, const auto& right) {
    return left.second < right.second;
  });
  const bool any = !regrets.empty();
  add("regret, mean over families", any ? std::optional(mean_of(regrets)) : std::nullopt, 0.015,
      regrets.size(), count(regrets.size()));
  add("regret, worst family", any ? std::optional(most->second) : std::nullopt, 0.05, regrets.size(),
      any ? most->first : std::string{});
  return measures;
}

std::string value_of(const Measure& measure) {
  if (!measure.value) return "-";
  char text[32];
  const bool counts = !measure.share && *measure.value >= 2;
  std::snprintf(text, sizeof text,
                measure.share ? "%.2f %%"
                : counts      ? "%.0f"
                              : "%.3f",
                (measure.share ? 100 : 1) * *measure.value);
  return text;
}

std::string bound_of(const Measure& measure) {
  char text[32];
  if (measure.least > 0) {
    std::snprintf(text, sizeof text, "%g to %g %%", 100 * measure.least, 100 * measure.bound);
    return text;
  }
  std::snprintf(text, sizeof text, measure.share ? "%g %%" : "%g", (measure.share ? 100 : 1) * measure.bound);
  return (measure.at_least ? "at least " : "at most ") + std::string(text);
}

std::string line_of(const Measure& measure, bool with_bound) {
  char text[128];
  std::snprintf(text, sizeof text, "%-56s %9s", measure.name.c_str(), value_of(measure).c_str());
  std::string line = text;
  if (measure.value && with_bound)
    line += "  " + bound_of(measure) +
            (measure.few       ? "  too few to judge"
             : measure.holds() ? "  holds"
                               : "  FAILS");
  if (measure.value && !measure.detail.empty()) line += "  (" + measure.detail + ")";
  return line;
}

double mean_of(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace published
