#include "specs/plan/plan_json.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "specs/language/catalog.h"
#include "specs/plan/placement_check.h"
#include "specs/schedule/generate.h"
#include "tests/specs/plan/sample_plan.h"

namespace specs {
namespace {

using nlohmann::ordered_json;

void expect_round_trip(const Plan& plan) {
  const std::string text = write_plan(plan);
  const Result<Plan> read = read_plan_text(text, "plan.json");
  ASSERT_TRUE(read.ok()) << read.diagnostics.render();
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(write_plan(*read), text);
}

TEST(PlanJson, WritesAndReadsTheSample) { expect_round_trip(sample_plan()); }

TEST(PlanJson, WritesAndReadsEveryModelOfTheCatalog) {
  for (const std::string& name : catalog_names(CatalogKind::model)) {
    const Experiment inputs = experiment_from("[model]\npreset = \"" + name +
                                              "\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = 4\n"
                                              "[training]\nglobal_batch = 32\nsequence_length = 512\n");
    SCOPED_TRACE(name);
    expect_round_trip(plan_of(inputs, regular_placement({.data = 32}, block_count(inputs.model))));
  }
}

TEST(PlanJson, WritesAndReadsMixedClustersAndEveryKindOfSearchKey) {
  const Experiment inputs = experiment_from(R"(
[model]
preset = "gpt2-small"
[cluster]
network = "ib-hdr-8x200"
[[cluster.group]]
node = "dgx-a100-80gb"
nodes = 1
[[cluster.group]]
node = "dgx-h100"
nodes = 1
[training]
global_batch = 64
sequence_length = 1024
stack = "megatron-core"
[search]
tensor = [1, 2]
schedule = ["1f1b"]
sequence_parallel = [true]
recomputation = ["full"]
axis_order = ["tp-cp-dp-pp"]
[sweep]
"training.global_batch" = [64, 128]
)");
  Placement placement =
      regular_placement({.tensor = 2, .pipeline = 2, .data = 4, .micro_batch = 1, .accumulation = 16},
                        block_count(inputs.model));
  placement.stages[1].device_group = 1;
  expect_round_trip(plan_of(inputs, placement));
}

TEST(PlanJson, WritesAndReadsUnequalShares) {
  const Experiment inputs = small_experiment();
  Placement placement = regular_placement({.tensor = 4, .data = 4, .micro_batch = 2, .accumulation = 8},
                                          block_count(inputs.model));
  placement.replica_shares = {{.replicas = 2, .micro_batches = 10}, {.replicas = 2, .micro_batches = 6}};
  const Plan plan = plan_of(inputs, placement);
  EXPECT_EQ(plan.schedule.replicas.size(), 2U);
  expect_round_trip(plan);
}

/// Placements of all kinds that the check accepts, with fields that no regular placement uses.
TEST(PlanJson, WritesAndReadsRandomPlans) {
  const Experiment inputs = small_experiment();
  std::mt19937 random(11);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  const auto power = [&](std::int64_t most) { return std::int64_t{1} << below(most + 1); };
  int tried = 0;
  for (int round = 0; round < 400; ++round) {
    const auto kind = static_cast<std::size_t>(below(7));
    RegularPlacement regular{.tensor = power(2),
                             .context = power(1),
                             .pipeline = power(2),
                             .data = power(2),
                             .order = *axis_order_from(below(2) == 0 ? "tp-cp-dp-pp" : "pp-tp-dp-cp"),
                             .micro_batch = power(2),
                             .schedule = EnumNames<ScheduleKind>::names.at(kind).first,
                             .sequence_parallel = below(2) == 0,
                             .recomputation = static_cast<Recomputation>(below(3)),
                             .zero = {.stage = below(4), .kept_units = below(2)},
                             .offload = {.optimizer = {OffloadDevice::cpu, 1 + below(8)}}};
    regular.accumulation = 64 / (regular.micro_batch * regular.data);
    for (const std::int64_t stages : {1, 2})
      if (schedule_refusal(regular.schedule, regular.pipeline, stages, regular.accumulation).empty())
        regular.virtual_stages = stages;
    Placement placement = regular_placement(regular, block_count(inputs.model));
    // A cut between an attention and its FFN, and a treatment of its own.
    if (placement.stages.size() > 1) {
      --placement.stages[0].units.end;
      --placement.stages[1].units.first;
      placement.stages[0].recomputation.clear();
      placement.stages[1].recomputation.clear();
      placement.stages[1].modules.feed_forward_tensor = regular.tensor > 1 ? 1 : 0;
    }
    if (!placement_violations(placement, inputs.model, inputs.cluster, inputs.training).empty()) continue;
    ++tried;
    expect_round_trip(plan_of(inputs, placement));
    if (HasFailure()) return;
  }
  EXPECT_GT(tried, 50);
}

TEST(PlanJson, KeepsDoublesToTheLastBit) {
  Plan plan = sample_plan();
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789, 1e22, 0.0}) {
    plan.prediction.step_seconds = value;
    expect_round_trip(plan);
  }
}

TEST(PlanJson, NamesTheFirstNumberThatNoFileCanHold) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Plan finite = sample_plan();
  EXPECT_EQ(non_finite_key(finite), "");
  const auto key_with = [&](const std::function<void(Plan&)>& spoil) {
    Plan plan = finite;
    spoil(plan);
    return non_finite_key(plan);
  };
  EXPECT_EQ(key_with([&](Plan& plan) { plan.objective = -infinite; }), "/objective");
  EXPECT_EQ(key_with([](Plan& plan) { plan.prediction.time[3].busy_seconds = std::nan(""); }),
            "/prediction/time/3/busy_seconds");
  EXPECT_EQ(key_with([&](Plan& plan) { plan.certificate.regions.front().bound = infinite; }),
            "/certificate/regions/0/bound");
  EXPECT_EQ(key_with([&](Plan& plan) {
              plan.inputs.cluster.network.node_bytes_per_second = infinite;
              plan.runners_up.front().objective = infinite;
            }),
            "/runners_up/0/objective");
  const std::string of_inputs = key_with(
      [&](Plan& plan) { plan.inputs.cluster.groups.front().node.device.memory_bytes_per_second = infinite; });
  const ordered_json written = ordered_json::parse(write_plan(finite));
  EXPECT_TRUE(of_inputs.starts_with("/inputs/") && written.contains(ordered_json::json_pointer(of_inputs)))
      << of_inputs;
}

TEST(PlanJson, StaysSmallFor1024AndFor100000Devices) {
  const auto bytes = [](std::int64_t nodes, const RegularPlacement& regular, std::int64_t batch) {
    const Experiment inputs =
        experiment_from("[model]\npreset = \"gpt3-175b\"\n[cluster]\nnode = \"dgx-a100-80gb\"\nnodes = " +
                        std::to_string(nodes) + "\n[training]\nglobal_batch = " + std::to_string(batch) +
                        "\nsequence_length = 2048\n");
    const Plan plan = plan_of(inputs, regular_placement(regular, block_count(inputs.model)));
    expect_round_trip(plan);
    return write_plan(plan).size();
  };
  EXPECT_LT(bytes(128,
                  {.tensor = 8,
                   .pipeline = 8,
                   .data = 16,
                   .accumulation = 96,
                   .schedule = ScheduleKind::interleaved,
                   .virtual_stages = 6},
                  1536),
            100'000U);
  EXPECT_LT(bytes(12500, {.tensor = 8, .pipeline = 50, .data = 250, .accumulation = 50}, 12500), 450'000U);
}

TEST(PlanJson, FoldsEqualStages) {
  Plan plan = sample_plan();
  plan.placement = regular_placement({.tensor = 1, .pipeline = 6, .data = 2, .accumulation = 32},
                                     block_count(plan.inputs.model));
  const ordered_json folded = ordered_json::parse(write_plan(plan))["placement"]["stages"];
  // The first stage also holds the embedding, the last the output layer.
  ASSERT_EQ(folded.size(), 3U);
  EXPECT_EQ(folded[1]["count"], 4);
  EXPECT_EQ(folded[1]["step"], (ordered_json{{"pipeline_rank", 1}, {"first_device", 2}, {"units", 4}}));
}

}  // namespace
}  // namespace specs
