#include "tests/numerics/comparison.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace runtime::numerics {

namespace {

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= result)) result = difference;  // a value that is no number counts as larger
  }
  return result;
}

double largest_relative(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::abs(b[i]);
    if (!(difference <= result)) result = difference;
  }
  return result;
}

bool is_key_bias(const std::string& name) { return name.find("k_proj.bias") != std::string::npos; }

/// The largest difference over the tensors, each measured against the larger of its own maximum and `floor`.
void compare_tensors(const Tensors& result, const Tensors& reference, double floor, bool skip_key_bias,
                     double& difference, std::string& where, std::string& defect) {
  if (result.size() != reference.size()) defect = "another number of tensors";
  for (const auto& [name, expected] : reference) {
    const auto found = result.find(name);
    if (found == result.end() || found->second.size() != expected.size()) {
      defect = name + " is missing or of another size";
      continue;
    }
    if (skip_key_bias && is_key_bias(name)) continue;
    const double here = largest_difference(found->second, expected) / std::max(largest(expected), floor);
    if (here <= difference) continue;
    difference = here;
    where = name;
  }
}

}  // namespace

Differences compare(const TrainingOutcome& result, const TrainingOutcome& reference, bool adam) {
  Differences differences;
  if (!result.defects.empty()) differences.defect = result.defects.front();
  differences.loss = largest_relative(result.losses, reference.losses);
  differences.gradient_norm = largest_relative(result.gradient_norms, reference.gradient_norms);
  double largest_gradient = 0;
  for (const auto& [name, values] : reference.gradients)
    largest_gradient = std::max(largest_gradient, largest(values));
  compare_tensors(result.gradients, reference.gradients, 1e-3 * largest_gradient, false, differences.gradient,
                  differences.gradient_name, differences.defect);
  compare_tensors(result.weights, reference.weights, 0.01, adam, differences.weight, differences.weight_name,
                  differences.defect);
  return differences;
}

Bars bars_for(specs::Precision precision) {
  if (precision == specs::Precision::fp64) return {1e-11, 1e-10, 1e-10};
  return {1e-5, 1e-5, 1e-5};
}

bool within(const Differences& differences, const Bars& bars) {
  return differences.defect.empty() && differences.loss <= bars.loss &&
         differences.gradient_norm <= bars.loss && differences.gradient <= bars.gradient &&
         differences.weight <= bars.weight;
}

std::string describe(const TrainingCase& training, const Differences& differences) {
  return fmt::format("{:<72} loss {:.1e}  norm {:.1e}  gradient {:.1e}  weight {:.1e}{}{}", training.name(),
                     differences.loss, differences.gradient_norm, differences.gradient, differences.weight,
                     differences.defect.empty() ? "" : "  ", differences.defect);
}

}  // namespace runtime::numerics
