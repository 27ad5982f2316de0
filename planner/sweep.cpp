#include "planner/sweep.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>

namespace planner {
namespace {

const specs::Plan* plan_of(const SweepOutcome& outcome) {
  return outcome.outcome && outcome.outcome->plan ? &*outcome.outcome->plan : nullptr;
}

std::array<double, 3> measures_of(const specs::Plan& plan) {
  return {plan.prediction.step_seconds, plan.prediction.cost_per_step_dollars,
          static_cast<double>(plan.prediction.peak_device_bytes)};
}

bool dominates(const specs::Plan& plan, const specs::Plan& other) {
  const auto a = measures_of(plan), b = measures_of(other);
  return a != b && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
}

}  // namespace

std::vector<SweepOutcome> run_sweep(const std::vector<specs::SweepPoint>& points, unsigned threads,
                                    const std::function<void(std::size_t, const SweepOutcome&)>& finished,
                                    const std::atomic<bool>& stop) {
  std::vector<SweepOutcome> outcomes(points.size());
  std::atomic<std::size_t> next = 0;
  std::mutex reporting;
  const auto work = [&] {
    for (std::size_t index = next++; index < points.size(); index = next++) {
      SweepOutcome& outcome = outcomes[index];
      outcome.settings = points[index].settings;
      if (stop) continue;
      specs::Result<PlanOutcome> planned = plan_experiment(points[index].experiment, &stop);
      if (stop) continue;
      outcome.outcome = std::move(planned.value);
      outcome.diagnostics = std::move(planned.diagnostics);
      const std::lock_guard lock(reporting);
      finished(index, outcome);
    }
  };
  std::vector<std::jthread> workers;
  const std::size_t useful = std::min<std::size_t>(std::max(threads, 1u), points.size());
  for (std::size_t worker = 1; worker < useful; ++worker) workers.emplace_back(work);
  work();
  workers.clear();
  return outcomes;
}

std::vector<bool> pareto_front(const std::vector<SweepOutcome>& outcomes) {
  std::vector<bool> front;
  for (const SweepOutcome& outcome : outcomes) {
    const specs::Plan* plan = plan_of(outcome);
    front.push_back(plan != nullptr &&
                    std::none_of(outcomes.begin(), outcomes.end(), [&](const SweepOutcome& other) {
                      const specs::Plan* other_plan = plan_of(other);
                      return other_plan != nullptr && dominates(*other_plan, *plan);
                    }));
  }
  return front;
}

}  // namespace planner
