// How fast one placement of GPT-3 175B on 1,024 devices is priced: in the search's inner loop, and term by
// term.
//
//   build/release/bin/estimate_benchmark
#include <vector>

#include <benchmark/benchmark.h>

#include "cost_models/estimate.h"
#include "specs/plan/placement.h"
#include "tests/cost_models/model_fixtures.h"

namespace {

using cost_models::Estimator;

Estimator gpt3() {
  return Estimator(cost_models::testing::experiment(cost_models::testing::gpt(96, 12288, 96, 51200, 2048),
                                                    128, 1536, 2048));
}

/// What a search runs through: every cut, schedule, recomputation and ZeRO stage of three tensor degrees.
std::vector<specs::RegularPlacement> placements() {
  std::vector<specs::RegularPlacement> all;
  for (const std::int64_t tensor : {2, 4, 8})
    for (const std::int64_t pipeline : {1, 2, 4, 8, 16, 32})
      for (const std::int64_t micro_batch : {1, 2, 4})
        for (const std::int64_t virtual_stages : {1, 3})
          for (const specs::Recomputation recomputation :
               {specs::Recomputation::none, specs::Recomputation::selective, specs::Recomputation::full})
            for (const std::int64_t zero : {0, 1}) {
              specs::RegularPlacement placement;
              placement.tensor = tensor;
              placement.pipeline = pipeline;
              placement.data = 1024 / tensor / pipeline;
              placement.micro_batch = micro_batch;
              placement.accumulation = 1536 / placement.data / micro_batch;
              if (placement.accumulation == 0 || (pipeline == 1 && virtual_stages > 1)) continue;
              placement.virtual_stages = virtual_stages;
              if (virtual_stages > 1) placement.schedule = specs::ScheduleKind::interleaved;
              placement.sequence_parallel = true;
              placement.recomputation = recomputation;
              placement.zero.stage = zero;
              all.push_back(placement);
            }
  return all;
}

template <class Price>
void each_placement(benchmark::State& state, Price price) {
  const std::vector<specs::RegularPlacement> all = placements();
  for (const specs::RegularPlacement& placement : all) benchmark::DoNotOptimize(price(placement));
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(price(all[next]));
    next = next + 1 == all.size() ? 0 : next + 1;
  }
  state.counters["placements/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// What the search asks first of a placement: whether it fits, and what it takes at the least.
void memory(benchmark::State& state) {
  const Estimator estimator = gpt3();
  each_placement(state, [&](const auto& placement) { return estimator.quick_memory(placement); });
}
BENCHMARK(memory);

void bound(benchmark::State& state) {
  const Estimator estimator = gpt3();
  each_placement(state, [&](const auto& placement) { return estimator.quick_bound(placement); });
}
BENCHMARK(bound);

/// Bytes, and seconds along the schedule's critical path.
void quick(benchmark::State& state) {
  const Estimator estimator = gpt3();
  each_placement(state, [&](const auto& placement) { return estimator.quick(placement); });
}
BENCHMARK(quick);

void estimate(benchmark::State& state) {
  const Estimator estimator = gpt3();
  specs::RegularPlacement regular;
  regular.tensor = 8;
  regular.pipeline = 16;
  regular.data = 8;
  regular.accumulation = 192;
  regular.sequence_parallel = true;
  const specs::Placement placement = specs::regular_placement(regular, 96);
  benchmark::DoNotOptimize(estimator.estimate(placement));
  for (auto _ : state) benchmark::DoNotOptimize(estimator.estimate(placement));
}
BENCHMARK(estimate);

}  // namespace

BENCHMARK_MAIN();
