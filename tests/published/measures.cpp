#include "tests/published/measures.h"

#include <algorithm>
#include <cmath>

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

double mean_of(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace published
