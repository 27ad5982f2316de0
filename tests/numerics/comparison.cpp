#include "tests/numerics/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace runtime::numerics {

namespace {

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

double largest_relative(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (is_larger(difference, result)) result = difference;
  }
  return result;
}

bool is_key_bias(const std::string& name) { return name.find("k_proj.bias") != std::string::npos; }

/// The element that differs most. A value that is no number differs more than any.
std::size_t furthest(const std::vector<double>& a, const std::vector<double>& b) {
  std::size_t where = 0;
  double most = -1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (difference <= most) continue;
    where = i;
    if (std::isnan(difference)) break;
    most = difference;
  }
  return where;
}

/// The largest difference over the tensors, each measured against the larger of its own maximum and `floor`.
TensorDifference compare_tensors(const Tensors& result, const Givers& givers, const Tensors& reference,
                                 double floor, bool skip_key_bias, std::string& defect) {
  TensorDifference worst;
  if (result.size() != reference.size()) defect = "another number of tensors";
  for (const auto& [name, expected] : reference) {
    const auto found = result.find(name);
    if (found == result.end() || found->second.size() != expected.size()) {
      defect = name + " is missing or of another size";
      continue;
    }
    if (skip_key_bias && is_key_bias(name)) continue;
    const std::size_t element = furthest(found->second, expected);
    const double here =
        std::abs(found->second[element] - expected[element]) / std::max(largest(expected), floor);
    if (!is_larger(here, worst.size)) continue;
    worst = {here, name, std::prev(givers.at(name).upper_bound(element))->second};
  }
  return worst;
}

}  // namespace

bool is_larger(double difference, double than) {
  return difference > than || (std::isnan(difference) && !std::isnan(than));
}

Differences compare(const TrainingOutcome& result, const TrainingOutcome& reference, bool adam) {
  Differences differences;
  if (!result.defects.empty()) differences.defect = result.defects.front();
  differences.loss = largest_relative(result.losses, reference.losses);
  differences.gradient_norm = largest_relative(result.gradient_norms, reference.gradient_norms);
  double largest_gradient = 0;
  for (const auto& [name, values] : reference.gradients)
    largest_gradient = std::max(largest_gradient, largest(values));
  differences.gradient = compare_tensors(result.gradients, result.gradient_givers, reference.gradients,
                                         1e-3 * largest_gradient, false, differences.defect);
  differences.weight = compare_tensors(result.weights, result.weight_givers, reference.weights, 0.01, adam,
                                       differences.defect);
  return differences;
}

Bars bars_for(specs::Precision precision) {
  if (precision == specs::Precision::fp64) return {1e-11, 1e-10, 1e-10};
  return {1e-5, 1e-5, 1e-5};
}

bool within(const Differences& differences, const Bars& bars) {
  return differences.defect.empty() && differences.loss <= bars.loss &&
         differences.gradient_norm <= bars.loss && differences.gradient.size <= bars.gradient &&
         differences.weight.size <= bars.weight;
}

std::string describe(const TrainingCase& training, const Differences& differences) {
  return fmt::format("{:<96} loss {:.1e}  norm {:.1e}  gradient {:.1e}  weight {:.1e}{}{}", training.name(),
                     differences.loss, differences.gradient_norm, differences.gradient.size,
                     differences.weight.size, differences.defect.empty() ? "" : "  ", differences.defect);
}

std::string describe_places(const Differences& differences) {
  return fmt::format("largest gradient difference {:.1e} in {} on rank {}, weight {:.1e} in {} on rank {}",
                     differences.gradient.size, differences.gradient.name, differences.gradient.rank,
                     differences.weight.size, differences.weight.name, differences.weight.rank);
}

void WorstDifferences::add(const TrainingCase& training, const Differences& differences) {
  const auto raise = [&](Worst& worst, double size, const std::string& tensor) {
    if (!is_larger(size, worst.size)) return;
    worst = {size, tensor.empty() ? training.name() : fmt::format("{} in {}", tensor, training.name())};
  };
  raise(loss_, differences.loss, {});
  raise(norm_, differences.gradient_norm, {});
  raise(gradient_, differences.gradient.size, differences.gradient.name);
  raise(weight_, differences.weight.size, differences.weight.name);
  ++placements_;
}

std::string WorstDifferences::summary() const {
  std::string text = fmt::format("{} placements, the largest differences:\n", placements_);
  for (const auto& [name, worst] : {std::pair<const char*, const Worst&>{"loss", loss_},
                                    {"norm", norm_},
                                    {"gradient", gradient_},
                                    {"weight", weight_}})
    text += fmt::format("  {:<9} {:.1e}  {}\n", name, worst.size, worst.where);
  return text;
}

}  // namespace runtime::numerics
