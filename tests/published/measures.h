// How well predictions agree with measurements: the measures that the record is judged by.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/published/published_run.h"

namespace published {

struct FamilyErrors {
  std::size_t rows = 0;
  double mean = 0;  ///< of |predicted / measured − 1|
  double worst = 0;
  double bias = 0;  ///< mean of predicted / measured − 1
};

using Families = std::map<std::string, FamilyErrors>;

/// Over the runs for which `select` holds.
template <class Select>
Families family_errors(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted,
                       Select select);

double mean_over_families(const Families& families);
double median_over_families(const Families& families);
/// Name and mean error of the family with the largest mean error.
std::pair<std::string, double> worst_family(const Families& families);

/// Kendall's τ of tokens/s/device between prediction and measurement among the distinct runs of a job, pairs
/// whose measurements are closer than 3 % left out; jobs have at least 3 runs. Mean over the jobs of each
/// family.
std::map<std::string, double> rank_order(const std::vector<PublishedRun>& runs,
                                         const std::vector<double>& predicted, bool same_device);

/// Time of the run that the model ranks first over the best measured one, minus 1; mean over the jobs of a
/// family.
std::map<std::string, double> regret(const std::vector<PublishedRun>& runs,
                                     const std::vector<double>& predicted);

double mean_of(const std::map<std::string, double>& values);

/// One figure that the predictions are judged by.
struct Measure {
  std::string name;
  std::optional<double> value;  ///< nothing where no run counts for it
  double bound = 0;
  bool at_least = false;  ///< the bound is a minimum
  bool share = true;      ///< printed in per cent
  std::string detail;     ///< the worst family, how many families
  bool few = false;       ///< a mean over fewer families than a bound on it can judge
  double least = 0;       ///< beside a bound that is a maximum: a minimum
  bool holds() const {
    return !value || few || (at_least ? *value >= bound : *value <= bound && *value >= least);
  }
};

/// All that follow from predictions of one set of constants, with the bounds this project holds itself to.
std::vector<Measure> measures_of(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted);

/// "4.08 %", "0.902", "-" for what has no runs; the bound alike.
std::string value_of(const Measure& measure);
std::string bound_of(const Measure& measure);
/// "name   4.08 %  at most 5 %  holds  (37 families)"; without what is behind the value where no bound
/// applies.
std::string line_of(const Measure& measure, bool with_bound = true);

template <class Select>
Families family_errors(const std::vector<PublishedRun>& runs, const std::vector<double>& predicted,
                       Select select) {
  Families families;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!select(runs[i])) continue;
    FamilyErrors& errors = families[runs[i].family];
    const double error = predicted[i] / runs[i].step_seconds - 1;
    ++errors.rows;
    errors.mean += error < 0 ? -error : error;
    errors.bias += error;
    errors.worst = std::max(errors.worst, error < 0 ? -error : error);
  }
  for (auto& [name, errors] : families) {
    errors.mean /= static_cast<double>(errors.rows);
    errors.bias /= static_cast<double>(errors.rows);
  }
  return families;
}

}  // namespace published
