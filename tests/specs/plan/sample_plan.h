// Plans that are whole, for tests to write, read and break.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "specs/language/read_experiment.h"
#include "specs/plan/plan.h"
#include "specs/plan/plan_check.h"
#include "specs/plan/rank_mapping.h"

namespace specs {

inline Experiment experiment_from(const std::string& text) {
  const Result<Experiment> experiment = read_experiment_text(text, "sample.toml");
  EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  return experiment.value.value_or(Experiment{});
}

/// GPT-2 on two nodes of eight A100, 64 sequences a step.
inline Experiment small_experiment() {
  return experiment_from(R"(
name = "sample"
[model]
preset = "gpt2-small"
[cluster]
node = "dgx-a100-80gb"
nodes = 2
[training]
global_batch = 64
sequence_length = 1024
)");
}

/// A plan of the placement with something in every section.
inline Plan plan_of(const Experiment& inputs, const Placement& placement) {
  Plan plan;
  plan.generator = "dsplan 0.1.0";
  plan.cost_model_version = "test";
  plan.inputs = inputs;
  plan.inputs_hash = inputs_hash(inputs);
  plan.placement = placement;
  plan.world_size = placement.world_size();
  plan.idle_devices = inputs.cluster.devices() - plan.world_size;
  plan.schedule = plan_schedule(placement);
  plan.environment = {{"NCCL_ALGO", "Tree", "latency of small messages"}};
  plan.ranks = consecutive_mapping(placement, inputs.cluster);
  plan.objective = 0.1 + 0.2;  // not the shortest decimal
  plan.prediction.step_seconds = plan.objective;
  plan.prediction.model_flops_per_step = 1.0 / 3 * 1e18;
  for (std::int64_t rank = -1; rank < placement.pipeline_ranks(); ++rank)
    for (const auto& [term, name] : EnumNames<TimeTerm>::names)
      plan.prediction.time.push_back({.term = term,
                                      .pipeline_rank = rank,
                                      .exposed_seconds = std::sqrt(static_cast<double>(rank + 2)) / 1000,
                                      .busy_seconds = 0.25,
                                      .flops = 1e15 / 3});
  for (std::int64_t rank = 0; rank < placement.pipeline_ranks(); ++rank)
    for (const auto& [memory_class, name] : EnumNames<MemoryClass>::names)
      plan.prediction.memory.push_back(
          {.memory_class = memory_class, .pipeline_rank = rank, .bytes = 1234567890123 + rank});
  plan.certificate = {.space_candidates = "123456789012345678901234567890",
                      .priced_candidates = "17",
                      .infeasible_candidates = "4",
                      .bounded_candidates = "0",
                      .gap = 0.005,
                      .complete = true,
                      .method = "exhaustive",
                      .regions = {{.kind = RegionKind::infeasible,
                                   .dimensions = {{"tensor", {"8", "16"}}},
                                   .candidates = "4",
                                   .rule = "memory",
                                   .reason = "81 GiB > 80 GiB"}}};
  plan.runners_up = {{.placement = placement,
                      .objective = 0.5,
                      .step_seconds = 0.5,
                      .peak_device_bytes = 1,
                      .trade = "slower by 66 %"}};
  plan.advice = {{"mixed-generations", "two generations", "the slower one sets the pace", "field guide"}};
  return plan;
}

/// Two stages, two tensor ranks, four replicas, ZeRO 1, with recomputation.
inline Plan sample_plan() {
  const Experiment inputs = small_experiment();
  return plan_of(inputs, regular_placement({.tensor = 2,
                                            .pipeline = 2,
                                            .data = 4,
                                            .micro_batch = 2,
                                            .accumulation = 8,
                                            .recomputation = Recomputation::selective,
                                            .zero = {.stage = 1}},
                                           block_count(inputs.model)));
}

}  // namespace specs
