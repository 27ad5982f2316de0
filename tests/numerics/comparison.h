// How far two training runs are apart, in the measures of the equality matrix.
#pragma once

#include <cstdint>
#include <string>

#include "tests/numerics/training_outcome.h"

namespace runtime::numerics {

/// Whether a difference is larger than another: what is no number is larger than any.
bool is_larger(double difference, double than);

/// The largest difference of one kind, and where it stands.
struct TensorDifference {
  double size = 0;
  std::string name;
  std::int64_t rank = -1;  ///< that gave the element
};

struct Differences {
  double loss = 0;           ///< largest |a − b| / |b| over the steps
  double gradient_norm = 0;  ///< likewise
  TensorDifference
      gradient;  ///< |a − b| over the larger of the tensor's max |b| and 10⁻³ of the largest of all
  TensorDifference weight;  ///< |a − b| over the larger of the tensor's max |b| and 0.01
  std::string defect;       ///< a tensor that is missing, or copies that differ; empty where all is well
};

struct Bars {
  double loss = 0;
  double gradient = 0;
  double weight = 0;
};

/// Weights of key biases are left out under AdamW, which turns the rounding noise of their gradient (exactly
/// zero in theory) into updates.
Differences compare(const TrainingOutcome& result, const TrainingOutcome& reference, bool adam);

Bars bars_for(specs::Precision precision);
bool within(const Differences& differences, const Bars& bars);
/// One line for a placement.
std::string describe(const TrainingCase& training, const Differences& differences);
/// Which tensors are furthest off, and on which rank.
std::string describe_places(const Differences& differences);

/// The largest of every kind over many placements.
class WorstDifferences {
 public:
  void add(const TrainingCase& training, const Differences& differences);
  /// One line a kind, with the placement and the tensor.
  std::string summary() const;

 private:
  struct Worst {
    double size = 0;
    std::string where;
  };
  Worst loss_, norm_, gradient_, weight_;
  std::int64_t placements_ = 0;
};

}  // namespace runtime::numerics
