#include "tests/published/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

namespace published {
namespace {

using cost_models::ConstantTable;

/// The constants that are fitted, by their index in the table.
std::vector<std::size_t> fitted_constants(const ConstantTable& table) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < table.constants().size(); ++i)
    if (table.constants()[i].spread > 0) indices.push_back(i);
  return indices;
}

struct Softened {
  double residual = 0;
  double slope = 0;  ///< d residual / d error
};

// r² = 2 (√(1 + (e/s)²) − 1): quadratic near zero, linear far out.
Softened soften(double error, double scale) {
  const double x = error / scale;
  const double root = std::sqrt(1 + x * x);
  const double residual = std::copysign(std::sqrt(2 * (root - 1)), x);
  if (std::abs(x) < 1e-6) return {x, 1 / scale};
  return {residual, x / (root * residual) / scale};
}

/// Runs work(begin, end, thread) over [0, count) on all cores.
template <class Work>
void in_parallel(std::size_t count, Work work) {
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t)
    pool.emplace_back([&, t] { work(count * t / threads, count * (t + 1) / threads, t); });
  for (std::thread& thread : pool) thread.join();
}

// Solves A x = b in place for a symmetric positive definite A of n rows (Cholesky); x is returned in b.
bool solve(std::vector<double>& a, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    double diagonal = a[j * n + j];
    for (std::size_t k = 0; k < j; ++k) diagonal -= a[j * n + k] * a[j * n + k];
    if (diagonal <= 0) return false;
    a[j * n + j] = std::sqrt(diagonal);
    for (std::size_t i = j + 1; i < n; ++i) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = sum / a[j * n + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

class Fitter {
 public:
  Fitter(RunPricer& pricer, const std::vector<double>& weights, const FitOptions& options,
         const ConstantTable& start)
      : pricer_(pricer), weights_(weights), options_(options), fitted_(fitted_constants(start)) {
    for (std::size_t i = 0; i < pricer.size(); ++i)
      if (weights[i] > 0) active_.push_back(i);
  }

  double objective(const ConstantTable& table) {
    std::vector<double> errors(active_.size());
    in_parallel(active_.size(), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) errors[i] = log_error(active_[i], table);
    });
    double sum = prior_objective(table);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const double residual = weights_[active_[i]] * soften(errors[i], options_.softening).residual;
      sum += residual * residual;
    }
    return sum;
  }

  /// Normal equations at `table`.
  void linearise(const ConstantTable& table, std::vector<double>& matrix, std::vector<double>& gradient) {
    const std::size_t n = fitted_.size();
    const bool first = pricer_.dependencies.empty();
    if (first) pricer_.dependencies.assign(pricer_.size(), {});
    const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::vector<double>> matrices(threads, std::vector<double>(n * n, 0.0));
    std::vector<std::vector<double>> gradients(threads, std::vector<double>(n, 0.0));
    in_parallel(active_.size(), [&](std::size_t begin, std::size_t end, std::size_t thread) {
      ConstantTable moved = table;
      std::vector<std::pair<std::size_t, double>> row;
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t run = active_[i];
        const Softened base = soften(log_error(run, table), options_.softening);
        row.clear();
        derivatives(run, table, moved, row);
        const double weight = weights_[run] * weights_[run];
        for (const auto& [p, slope_p] : row) {
          const double jp = base.slope * slope_p;
          gradients[thread][p] += weight * jp * base.residual;
          for (const auto& [q, slope_q] : row)
            matrices[thread][p * n + q] += weight * jp * base.slope * slope_q;
        }
      }
    });
    matrix.assign(n * n, 0.0);
    gradient.assign(n, 0.0);
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < n * n; ++i) matrix[i] += matrices[t][i];
      for (std::size_t i = 0; i < n; ++i) gradient[i] += gradients[t][i];
    }
    for (std::size_t p = 0; p < n; ++p) {
      const cost_models::Constant& constant = table.constants()[fitted_[p]];
      const double slope = options_.prior_weight / constant.spread;
      matrix[p * n + p] += slope * slope;
      gradient[p] += slope * slope * std::log(constant.value / constant.prior);
    }
  }

  ConstantTable stepped(const ConstantTable& table, const std::vector<double>& step) const {
    ConstantTable next = table;
    for (std::size_t p = 0; p < fitted_.size(); ++p)
      next.set(fitted_[p], table.constants()[fitted_[p]].value * std::exp(std::clamp(step[p], -0.7, 0.7)));
    return next;
  }

 private:
  double log_error(std::size_t run, const ConstantTable& table) {
    return std::log(pricer_.price(run, table) / pricer_.runs()[run].step_seconds);
  }

  void derivatives(std::size_t run, const ConstantTable& table, ConstantTable& moved,
                   std::vector<std::pair<std::size_t, double>>& row) {
    constexpr double h = 1e-4;
    const double base = std::log(pricer_.price(run, table));
    std::vector<std::uint16_t>& known = pricer_.dependencies[run];
    const auto derive = [&](std::size_t p) {
      const double value = table.constants()[fitted_[p]].value;
      moved.set(fitted_[p], value * std::exp(h));
      const double slope = (std::log(pricer_.price(run, moved)) - base) / h;
      moved.set(fitted_[p], value);
      return slope;
    };
    if (known.empty()) {
      for (std::size_t p = 0; p < fitted_.size(); ++p) {
        const double slope = derive(p);
        if (slope == 0) continue;
        known.push_back(static_cast<std::uint16_t>(p));
        row.emplace_back(p, slope);
      }
      return;
    }
    for (const std::uint16_t p : known) row.emplace_back(p, derive(p));
  }

  double prior_objective(const ConstantTable& table) const {
    double sum = 0;
    for (const std::size_t index : fitted_) {
      const cost_models::Constant& constant = table.constants()[index];
      const double residual =
          options_.prior_weight * std::log(constant.value / constant.prior) / constant.spread;
      sum += residual * residual;
    }
    return sum;
  }

  RunPricer& pricer_;
  const std::vector<double>& weights_;
  const FitOptions& options_;
  std::vector<std::size_t> fitted_;
  std::vector<std::size_t> active_;
};

}  // namespace

RunPricer::RunPricer(const std::vector<PublishedRun>& runs) : runs_(&runs) {
  for (const PublishedRun& run : runs) {
    inputs_.push_back(cost_models::make_cost_inputs(
        run.experiment, cost_models::stack_profile(run.experiment.training), ConstantTable::built_in()));
    keys_.push_back(cost_models::layer_key(run.placement));
  }
}

double RunPricer::price(std::size_t run, const ConstantTable& constants) {
  cost_models::CostInputs& inputs = inputs_[run];
  cost_models::resolve_constants(constants, inputs);
  const PublishedRun& published = (*runs_)[run];
  const specs::RegularPlacement& placement = published.placement;
  return cost_models::regular_step_seconds(inputs, cost_models::layer_costs(inputs, keys_[run]),
                                           cost_models::job_shape(inputs, placement),
                                           cost_models::shard_key(placement), published.cut, orders_);
}

std::vector<double> RunPricer::price_all(const ConstantTable& constants) {
  std::vector<double> prices(size());
  for (std::size_t i = 0; i < size(); ++i) prices[i] = price(i, constants);
  return prices;
}

double fit(RunPricer& pricer, const std::vector<double>& weights, ConstantTable& constants,
           const FitOptions& options) {
  Fitter fitter(pricer, weights, options, constants);
  double objective = fitter.objective(constants);
  double damping = 1e-3;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    std::vector<double> matrix, gradient;
    fitter.linearise(constants, matrix, gradient);
    const std::size_t n = gradient.size();
    bool improved = false;
    double decrease = 0;
    for (int attempt = 0; attempt < 6 && !improved; ++attempt) {
      std::vector<double> damped = matrix;
      std::vector<double> step(n);
      for (std::size_t p = 0; p < n; ++p) {
        damped[p * n + p] *= 1 + damping;
        step[p] = -gradient[p];
      }
      if (solve(damped, step)) {
        const ConstantTable next = fitter.stepped(constants, step);
        const double value = fitter.objective(next);
        if (value < objective) {
          decrease = 1 - value / objective;
          constants = next;
          objective = value;
          improved = true;
          damping = std::max(damping / 5, 1e-7);
          break;
        }
      }
      damping *= 8;
    }
    if (options.progress) options.progress(iteration, objective);
    if (!improved || decrease < options.tolerance) break;
  }
  return objective;
}

std::vector<double> family_weights(const std::vector<PublishedRun>& runs, const std::vector<bool>& selected) {
  std::map<std::string, double> counts;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (selected[i]) counts[runs[i].family] += 1;
  std::vector<double> weights(runs.size(), 0.0);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (selected[i]) weights[i] = 1 / std::sqrt(counts[runs[i].family]);
  return weights;
}

}  // namespace published
