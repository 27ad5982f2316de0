// Fits the constants of the cost models to published runs: Levenberg-Marquardt over the logarithms of the
// constants that have a prior, each run's logarithmic error softened (pseudo-Huber at 8 %), each family
// weighing the same.
#pragma once

#include <functional>
#include <vector>

#include "cost_models/constants.h"
#include "tests/published/published_run.h"

namespace published {

/// Prices runs under a table of constants that changes.
class RunPricer {
 public:
  explicit RunPricer(const std::vector<PublishedRun>& runs);
  std::size_t size() const { return runs_->size(); }
  double price(std::size_t run, const cost_models::ConstantTable& constants);
  std::vector<double> price_all(const cost_models::ConstantTable& constants);
  const std::vector<PublishedRun>& runs() const { return *runs_; }
  double interval_half_width(std::size_t run) const { return inputs_[run].interval_half_width; }
  /// Constants that the run's price was seen to depend on; all before the first derivative.
  std::vector<std::vector<std::uint16_t>> dependencies;

 private:
  const std::vector<PublishedRun>* runs_;
  std::vector<cost_models::CostInputs> inputs_;
  std::vector<cost_models::LayerKey> keys_;
  cost_models::ScheduleOrders orders_;
};

struct FitOptions {
  int iterations = 8;
  double prior_weight = 0.35;
  double softening = 0.08;
  double tolerance = 1e-4;  ///< relative decrease of the objective below which the fit ends
  std::function<void(int, double)> progress;
};

/// Improves `constants` on the runs whose weight is not 0; returns the objective.
double fit(RunPricer& pricer, const std::vector<double>& weights, cost_models::ConstantTable& constants,
           const FitOptions& options);

/// 1 / √(runs of its family) for each selected run, else 0.
std::vector<double> family_weights(const std::vector<PublishedRun>& runs, const std::vector<bool>& selected);

}  // namespace published
