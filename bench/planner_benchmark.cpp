// How fast the planner is: candidates priced a second, the whole way from experiment to plan, and what is
// done with a plan.
//
//   build/release/bin/planner_benchmark
#include <cstdlib>
#include <iostream>

#include <benchmark/benchmark.h>

#include "cost_models/estimate.h"
#include "planner/plan/plan_experiment.h"
#include "planner/pricing/pricing.h"
#include "planner/search/branch_and_bound.h"
#include "planner/simulate/placement_simulation.h"
#include "planner/space/space.h"
#include "specs/language/catalog.h"
#include "specs/language/read_experiment.h"
#include "specs/plan/plan_json.h"

namespace {

constexpr const char* experiment_path = "examples/gpt3-175b.toml";
constexpr const char* mixed_path = "examples/mixed-a100-h100.toml";

specs::Experiment experiment(const char* path = experiment_path) {
  const auto result = specs::read_experiment(path);
  if (!result) {
    std::cerr << result.diagnostics.render();
    std::exit(2);
  }
  return *result;
}

void enumerate_space(benchmark::State& state) {
  const specs::Experiment inputs = experiment();
  const auto stack = specs::stack_of(inputs.training);
  std::uint64_t candidates = 0;
  for (auto _ : state) candidates += planner::Space(inputs, *stack).outer_points();
  state.counters["candidates"] = static_cast<double>(candidates) / static_cast<double>(state.iterations());
}
BENCHMARK(enumerate_space)->Unit(benchmark::kMillisecond);

void search_space(benchmark::State& state) {
  const specs::Experiment inputs = experiment();
  const auto stack = specs::stack_of(inputs.training);
  const planner::Space space(inputs, *stack);
  double candidates = 0;
  for (auto _ : state) {
    const cost_models::Estimator estimator(inputs);
    const planner::EstimatorPricer pricer(inputs, *stack, estimator);
    const planner::SearchResult result = planner::branch_and_bound(inputs, space, estimator, pricer);
    candidates = result.candidates.convert_to<double>();
  }
  state.counters["candidates_per_second"] =
      benchmark::Counter(candidates, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(search_space)->Unit(benchmark::kMillisecond);

void experiment_to_plan_text(benchmark::State& state) {
  for (auto _ : state) {
    const auto outcome = planner::plan_experiment(experiment());
    benchmark::DoNotOptimize(specs::write_plan(*outcome->plan));
  }
}
BENCHMARK(experiment_to_plan_text)->Unit(benchmark::kMillisecond);

specs::Plan plan() { return *planner::plan_experiment(experiment())->plan; }

void write_plan(benchmark::State& state) {
  const specs::Plan written = plan();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = specs::write_plan(written).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(write_plan)->Unit(benchmark::kMillisecond);

void read_plan(benchmark::State& state) {
  const std::string text = specs::write_plan(plan());
  for (auto _ : state) benchmark::DoNotOptimize(specs::read_plan_text(text, "plan.json"));
}
BENCHMARK(read_plan)->Unit(benchmark::kMillisecond);

/// The plan's schedule event by event: 96 stages, 32 micro-batches.
void simulate_plan(benchmark::State& state) {
  const specs::Plan simulated = plan();
  const cost_models::Estimator estimator(simulated.inputs);
  for (auto _ : state) benchmark::DoNotOptimize(planner::simulate_step(estimator, simulated.placement));
}
BENCHMARK(simulate_plan)->Unit(benchmark::kMillisecond);

/// Two generations of GPUs: unequal stages in both orders, and unequal shares.
void mixed_experiment_to_plan_text(benchmark::State& state) {
  for (auto _ : state) {
    const auto outcome = planner::plan_experiment(experiment(mixed_path));
    benchmark::DoNotOptimize(specs::write_plan(*outcome->plan));
  }
}
BENCHMARK(mixed_experiment_to_plan_text)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
