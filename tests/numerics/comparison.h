// How far two training runs are apart, in the measures of the equality matrix.
#pragma once

#include <string>

#include "tests/numerics/training_outcome.h"

namespace runtime::numerics {

struct Differences {
  double loss = 0;           ///< largest |a − b| / |b| over the steps
  double gradient_norm = 0;  ///< likewise
  double gradient =
      0;  ///< max |a − b| over the larger of the tensor's max |b| and 10⁻³ of the largest of all
  double weight = 0;          ///< max |a − b| over the larger of the tensor's max |b| and 0.01
  std::string gradient_name;  ///< where the largest stands
  std::string weight_name;
  std::string defect;  ///< a tensor that is missing, or copies that differ; empty where all is well
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

}  // namespace runtime::numerics
