#include "specs/plan/placement.h"

#include <set>
#include <unordered_set>

#include <gtest/gtest.h>

namespace specs {
namespace {

std::vector<UnitRange> units_of(const Placement& placement) {
  std::vector<UnitRange> units;
  for (const PipelineStage& stage : placement.stages) units.push_back(stage.units);
  return units;
}

std::vector<std::int64_t> ranks_of(const DeviceSet& devices) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t index = 0; index < devices.size(); ++index) ranks.push_back(devices.rank(index));
  return ranks;
}

TEST(RegularPlacement, CutsLayersEvenlyWithTheRemainderAfterTheFirstStage) {
  EXPECT_EQ(units_of(regular_placement({.pipeline = 1}, 3)), (std::vector<UnitRange>{{0, 8}}));
  EXPECT_EQ(units_of(regular_placement({.pipeline = 2}, 4)), (std::vector<UnitRange>{{0, 5}, {5, 10}}));
  // Five layers on three stages: 1, 2, 2.
  EXPECT_EQ(units_of(regular_placement({.pipeline = 3}, 5)),
            (std::vector<UnitRange>{{0, 3}, {3, 7}, {7, 12}}));
  // Seven on three: 2, 3, 2.
  EXPECT_EQ(units_of(regular_placement({.pipeline = 3}, 7)),
            (std::vector<UnitRange>{{0, 5}, {5, 11}, {11, 16}}));
}

TEST(RegularPlacement, TilesTheUnitsForEveryDepth) {
  for (std::int64_t layers = 1; layers <= 30; ++layers)
    for (std::int64_t pipeline = 1; pipeline <= layers; ++pipeline) {
      std::int64_t next = 0;
      std::set<std::int64_t> sizes;
      for (const PipelineStage& stage : regular_placement({.pipeline = pipeline}, layers).stages) {
        EXPECT_EQ(stage.units.first, next);
        next = stage.units.end;
        sizes.insert(layers_touched(stage.units, layers));
      }
      EXPECT_EQ(next, unit_count(layers));
      EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1) << layers << " on " << pipeline;
    }
}

TEST(RegularPlacement, PutsRanksWhereTheAxisOrderSays) {
  RegularPlacement regular{.tensor = 2, .pipeline = 2, .data = 2};
  EXPECT_EQ(ranks_of(regular_placement(regular, 4).stages[1].devices),
            (std::vector<std::int64_t>{4, 5, 6, 7}));
  regular.order = *axis_order_from("tp-pp-cp-dp");
  EXPECT_EQ(ranks_of(regular_placement(regular, 4).stages[1].devices),
            (std::vector<std::int64_t>{2, 3, 6, 7}));
  regular.order = *axis_order_from("pp-tp-cp-dp");
  EXPECT_EQ(ranks_of(regular_placement(regular, 4).stages[1].devices),
            (std::vector<std::int64_t>{1, 3, 5, 7}));
}

TEST(RegularPlacement, LaysVirtualStagesAsTheScheduleDoes) {
  const auto pipeline_ranks = [](ScheduleKind kind) {
    std::vector<std::int64_t> ranks;
    for (const PipelineStage& stage :
         regular_placement({.pipeline = 3, .schedule = kind, .virtual_stages = 2}, 6).stages)
      ranks.push_back(stage.pipeline_rank);
    return ranks;
  };
  EXPECT_EQ(pipeline_ranks(ScheduleKind::interleaved), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(pipeline_ranks(ScheduleKind::zero_bubble_v), (std::vector<std::int64_t>{0, 1, 2, 2, 1, 0}));
}

TEST(RegularPlacement, IsRecognisedAndNothingElseIs) {
  RegularPlacement regular{.tensor = 2,
                           .context = 2,
                           .pipeline = 3,
                           .data = 4,
                           .order = *axis_order_from("tp-pp-dp-cp"),
                           .micro_batch = 2,
                           .accumulation = 5,
                           .schedule = ScheduleKind::interleaved,
                           .virtual_stages = 2,
                           .sequence_parallel = true,
                           .recomputation = Recomputation::full,
                           .zero = {.stage = 2},
                           .offload = {.optimizer = {OffloadDevice::cpu, 4}}};
  const Placement placement = regular_placement(regular, 13);
  EXPECT_EQ(as_regular(placement, 13), regular);
  EXPECT_EQ(placement.world_size(), 48);

  Placement uneven = placement;
  ++uneven.stages[0].units.end;
  ++uneven.stages[1].units.first;
  EXPECT_EQ(as_regular(uneven, 13), std::nullopt);
  Placement local = placement;
  local.local_steps = 4;
  EXPECT_EQ(as_regular(local, 13)->local_steps, 4);
  Placement unlike = placement;
  unlike.stages[2].zero.stage = 1;
  EXPECT_EQ(as_regular(unlike, 13), std::nullopt);
  EXPECT_EQ(as_regular(Placement{}, 13), std::nullopt);
}

TEST(Placement, HashDependsOnEveryField) {
  const Placement base = regular_placement({.tensor = 2, .pipeline = 2, .data = 2}, 4);
  std::vector<Placement> all{base};
  const auto variant = [&](auto edit) {
    Placement edited = base;
    edit(edited);
    ASSERT_NE(edited, base);
    all.push_back(edited);
  };
  variant([](Placement& p) { p.micro_batch = 2; });
  variant([](Placement& p) { p.accumulation = 2; });
  variant([](Placement& p) { p.schedule = ScheduleKind::gpipe; });
  variant([](Placement& p) { p.virtual_stages = 2; });
  variant([](Placement& p) { p.micro_batch_group = 2; });
  variant([](Placement& p) { p.sequence_parallel = true; });
  variant([](Placement& p) { p.local_steps = 2; });
  variant([](Placement& p) { p.buckets.gradient_bucket_bytes = 1; });
  variant([](Placement& p) { p.buckets.gather_bucket_bytes = 1; });
  variant([](Placement& p) { p.buckets.minimum_message_bytes = 1; });
  variant([](Placement& p) { p.buckets.prefetch_units = 2; });
  variant([](Placement& p) { p.replica_shares = {{.replicas = 2}}; });
  variant([](Placement& p) { p.stages.pop_back(); });
  const auto stage_variant = [&](auto edit) { variant([&](Placement& p) { edit(p.stages[1]); }); };
  stage_variant([](PipelineStage& s) { s.pipeline_rank = 7; });
  stage_variant([](PipelineStage& s) { s.device_group = 1; });
  stage_variant([](PipelineStage& s) { s.devices.first = 1; });
  stage_variant([](PipelineStage& s) { s.devices.stride = 9; });
  stage_variant([](PipelineStage& s) { s.mesh.context_mode = ContextMode::all_gather; });
  stage_variant([](PipelineStage& s) { s.mesh.order = *axis_order_from("pp-dp-cp-tp"); });
  stage_variant([](PipelineStage& s) { s.mesh.expert = 2; });
  stage_variant([](PipelineStage& s) { s.units.first = 4; });
  stage_variant([](PipelineStage& s) { s.modules.attention_tensor = 1; });
  stage_variant([](PipelineStage& s) { s.modules.attention_work = ReplicaWork::token_share; });
  stage_variant([](PipelineStage& s) { s.modules.output_mode = OutputLayerMode::token_parallel; });
  stage_variant([](PipelineStage& s) { s.recomputation = {{.layers = 2}}; });
  stage_variant([](PipelineStage& s) { s.recomputation = {{.layers = 2, .modules = 4}}; });
  stage_variant([](PipelineStage& s) { s.recomputation = {{.layers = 2, .block_layers = 2}}; });
  stage_variant([](PipelineStage& s) { s.zero.stage = 1; });
  stage_variant([](PipelineStage& s) { s.zero.scope = ShardScope::node; });
  stage_variant([](PipelineStage& s) { s.zero.shard_ranks = 2; });
  stage_variant([](PipelineStage& s) { s.zero.kept_units = 2; });
  stage_variant([](PipelineStage& s) { s.offload.activations = {OffloadDevice::cpu, 1}; });
  stage_variant([](PipelineStage& s) { s.offload.delayed_update = true; });
  std::unordered_set<std::size_t> hashes;
  for (const Placement& placement : all) hashes.insert(hash_value(placement));
  EXPECT_EQ(hashes.size(), all.size());
  EXPECT_EQ(hash_value(base), hash_value(Placement(base)));
}

TEST(LayersTouched, CountsALayerWhereAnyOfItsUnitsIsHere) {
  EXPECT_EQ(layers_touched({0, 1}, 4), 0);   // the embedding alone
  EXPECT_EQ(layers_touched({9, 10}, 4), 0);  // the output layer alone
  EXPECT_EQ(layers_touched({0, 10}, 4), 4);
  EXPECT_EQ(layers_touched({2, 3}, 4), 1);  // an FFN
  EXPECT_EQ(layers_touched({2, 4}, 4), 2);  // an FFN and the next attention
  EXPECT_EQ(layers_touched({1, 5}, 4), 2);
}

TEST(RecomputationOf, WalksTheRuns) {
  const PipelineStage stage{.recomputation = {{.layers = 2, .mode = Recomputation::full},
                                              {.layers = 1, .mode = Recomputation::selective}}};
  EXPECT_EQ(recomputation_of(stage, 0), Recomputation::full);
  EXPECT_EQ(recomputation_of(stage, 1), Recomputation::full);
  EXPECT_EQ(recomputation_of(stage, 2), Recomputation::selective);
  EXPECT_EQ(recomputation_of(stage, 3), Recomputation::none);
  EXPECT_EQ(recomputation_of(PipelineStage{}, 0), Recomputation::none);
}

TEST(AxisOrder, ReadsWhatItPrints) {
  EXPECT_EQ(to_string(default_axis_order), "tp-cp-dp-pp");
  EXPECT_EQ(axis_order_from("pp-tp-dp-cp"),
            (AxisOrder{MeshAxis::pipeline, MeshAxis::tensor, MeshAxis::data, MeshAxis::context}));
  EXPECT_EQ(axis_order_from("tp-tp-dp-cp"), std::nullopt);
  EXPECT_EQ(axis_order_from(""), std::nullopt);
}

}  // namespace
}  // namespace specs
