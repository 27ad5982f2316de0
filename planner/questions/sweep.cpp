#include "planner/questions/sweep.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "planner/plan/versions.h"
#include "planner/questions/pareto_front.h"
#include "specs/plan/plan_check.h"

namespace planner {

const specs::Plan* plan_of(const SweepOutcome& outcome) {
  return outcome.outcome && outcome.outcome->plan ? &*outcome.outcome->plan : nullptr;
}

bool answers(const specs::Plan& plan, const specs::Experiment& experiment) {
  return plan.inputs_hash == specs::inputs_hash(experiment) && plan.generator == program_version() &&
         plan.cost_model_version == cost_model_version() && plan.certificate.complete;
}

std::vector<SweepOutcome> run_sweep(const std::vector<specs::SweepPoint>& points, const SweepRun& run,
                                    const std::atomic<bool>& stop) {
  std::vector<SweepOutcome> outcomes(points.size());
  std::atomic<std::size_t> next = 0;
  std::mutex reporting;
  const auto work = [&] {
    for (std::size_t index = next++; index < points.size(); index = next++) {
      SweepOutcome& outcome = outcomes[index];
      outcome.settings = points[index].settings;
      if (auto plan = run.made_before(index)) {
        outcome.outcome.emplace();
        outcome.outcome->plan = std::move(plan);
        continue;
      }
      if (stop) continue;
      specs::Result<PlanOutcome> planned = plan_experiment(points[index].experiment, &stop);
      if (stop) continue;
      outcome.outcome = std::move(planned.value);
      outcome.diagnostics = std::move(planned.diagnostics);
      const std::lock_guard lock(reporting);
      run.finished(index, outcome);
    }
  };
  std::vector<std::jthread> workers;
  const std::size_t useful = std::min<std::size_t>(std::max(run.threads, 1u), points.size());
  for (std::size_t worker = 1; worker < useful; ++worker) workers.emplace_back(work);
  work();
  workers.clear();
  return outcomes;
}

std::optional<std::size_t> fewest_devices_within(const std::vector<SweepOutcome>& outcomes, double seconds) {
  std::optional<std::size_t> best;
  const auto better = [&](const specs::Plan& plan, const specs::Plan& than) {
    if (plan.world_size != than.world_size) return plan.world_size < than.world_size;
    return plan.prediction.run_seconds < than.prediction.run_seconds;
  };
  for (std::size_t point = 0; point < outcomes.size(); ++point) {
    const specs::Plan* plan = plan_of(outcomes[point]);
    if (plan == nullptr || plan->prediction.run_seconds <= 0 || plan->prediction.run_seconds > seconds)
      continue;
    if (!best || better(*plan, *plan_of(outcomes[*best]))) best = point;
  }
  return best;
}

std::vector<bool> pareto_front(const std::vector<SweepOutcome>& outcomes) {
  std::vector<ParetoPoint> planned;
  for (const SweepOutcome& outcome : outcomes)
    if (const specs::Plan* plan = plan_of(outcome)) planned.push_back(pareto_point(plan->prediction));
  const std::vector<bool> front_of_planned = pareto_front(planned);
  std::vector<bool> front;
  auto next = front_of_planned.begin();
  for (const SweepOutcome& outcome : outcomes) front.push_back(plan_of(outcome) != nullptr && *next++);
  return front;
}

}  // namespace planner
