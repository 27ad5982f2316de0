#include "specs/plan/placement_check.h"

#include <gtest/gtest.h>

#include "specs/schedule/generate.h"
#include "tests/specs/plan/sample_plan.h"

namespace specs {
namespace {

/// Two stages, two tensor ranks, four replicas of GPT-2 (12 heads, 12 layers) on 16 devices.
class PlacementCheck : public testing::Test {
 protected:
  Experiment inputs_ = small_experiment();
  Placement placement_ = sample_plan().placement;

  /// "field: message" of the first violation, or nothing.
  std::string violation() const {
    const auto violations =
        placement_violations(placement_, inputs_.model, inputs_.cluster, inputs_.training);
    return violations.empty() ? "" : violations.front().field + ": " + violations.front().message;
  }
  PipelineStage& stage(std::size_t index) { return placement_.stages[index]; }
  void for_all_stages(auto edit) {
    for (PipelineStage& each : placement_.stages) edit(each);
  }
};

TEST_F(PlacementCheck, AcceptsTheSample) { EXPECT_EQ(violation(), ""); }

TEST_F(PlacementCheck, AcceptsWhateverRegularPlacementsAreLegal) {
  for (std::int64_t tensor : {1, 2, 4})
    for (std::int64_t pipeline : {1, 2, 4})
      for (const char* order : {"tp-cp-dp-pp", "pp-dp-cp-tp", "tp-pp-dp-cp"}) {
        placement_ = regular_placement({.tensor = tensor,
                                        .pipeline = pipeline,
                                        .data = 16 / (tensor * pipeline),
                                        .order = *axis_order_from(order),
                                        .accumulation = 4 * tensor * pipeline},
                                       12);
        EXPECT_EQ(violation(), "") << tensor << " " << pipeline << " " << order;
      }
}

TEST_F(PlacementCheck, NamesHeadsThatDoNotDivide) {
  placement_ = regular_placement({.tensor = 8, .data = 2, .accumulation = 32}, 12);
  EXPECT_EQ(violation(), "stages/0/mesh/tensor: heads 12 % tensor 8 = 4, must be 0");
  stage(0).modules.attention_tensor = 4;
  EXPECT_EQ(violation(), "");
  inputs_.model.attention.kv_heads = 3;
  EXPECT_EQ(violation(),
            "stages/0/modules/attention_tensor: kv_heads 3 % tensor 4 = 3 and tensor 4 % kv_heads 3 = 1, one "
            "must be 0");
  inputs_.model.attention.kv_heads = 2;
  EXPECT_EQ(violation(), "");
  inputs_.model.feed_forward.hidden = 3076;
  EXPECT_EQ(violation(), "stages/0/mesh/tensor: FFN hidden 3076 % tensor 8 = 4, must be 0");
}

TEST_F(PlacementCheck, NamesTheBatchIdentity) {
  placement_.micro_batch = 3;
  EXPECT_EQ(violation(),
            "stages/0/mesh/data: micro_batch 3 × accumulation 8 × data 4 = 96, must be global_batch 64 "
            "(stages 0, 1)");
  placement_.micro_batch = 2;
  placement_.replica_shares = {{.replicas = 2, .micro_batches = 10}, {.replicas = 2, .micro_batches = 7}};
  EXPECT_EQ(violation(), "replica_shares: micro_batch 2 × 34 micro-batches = 68, must be global_batch 64");
  placement_.replica_shares = {{.replicas = 4, .micro_batches = 8}, {.replicas = 0, .micro_batches = 8}};
  EXPECT_EQ(violation(), "replica_shares/1/replicas: 0 is not in [1, 16777216]");
}

TEST_F(PlacementCheck, NamesUnitsThatAreLeftOutOrTwice) {
  ++stage(1).units.first;
  EXPECT_EQ(violation(), "stages/1/units: starts at unit 14, but the stages before end at 13");
  stage(1).units = {12, 26};
  EXPECT_EQ(violation(), "stages/1/units: starts at unit 12, but the stages before end at 13");
  stage(1).units = {13, 25};
  EXPECT_EQ(violation(), "stages: the stages hold 25 units, the model has 2 × 12 blocks + 2 = 26");
  stage(1).units = {13, 13};
  EXPECT_EQ(
      violation(),
      "stages/1/units: [13, 13) is not a part of the model's 26 units (2 × 12 blocks + 2) with at least one "
      "unit");
}

TEST_F(PlacementCheck, NamesDevicesThatAreLeftOutOrTwice) {
  stage(1).devices.first = 4;
  EXPECT_EQ(violation(), "stages/1/devices: rank 4 belongs to pipeline ranks 0 and 1");
  stage(1).devices.first = 9;
  EXPECT_EQ(violation(), "stages/1/devices: holds rank 16, but the stages together have 16 ranks, 0 to 15");
  stage(1).devices = {.first = 8, .block = 4};
  EXPECT_EQ(violation(), "stages/1/devices: tensor 2 × context 1 × data 4 = 8 ranks, but 4 devices");
  stage(0).devices = {.first = 8, .block = 8};
  stage(1).devices = {.first = 0, .block = 8};
  EXPECT_EQ(violation(), "stages/0/devices: order tp-cp-dp-pp puts rank 8 on pipeline rank 1, not 0");
  inputs_.cluster.groups[0].nodes = 1;
  placement_ = sample_plan().placement;
  EXPECT_EQ(violation(), "stages/1/devices/first: 8 is not in [0, 7]");
}

TEST_F(PlacementCheck, NamesWhatTheScheduleForbids) {
  placement_.schedule = ScheduleKind::interleaved;
  EXPECT_EQ(violation(), "schedule: schedule interleaved needs virtual_stages ≥ 2, not 1");
  placement_.schedule = ScheduleKind::one_forward_one_backward;
  placement_.micro_batch_group = 2;
  EXPECT_EQ(violation(), "schedule: micro_batch_group 2 belongs to schedule interleaved; 1f1b needs 0");
  placement_.micro_batch_group = 0;
  std::swap(stage(0).pipeline_rank, stage(1).pipeline_rank);
  EXPECT_EQ(violation(),
            "stages/0/pipeline_rank: 1 holds stage 0, but schedule 1f1b on 2 pipeline ranks puts it on 0");
  placement_.virtual_stages = 3;
  EXPECT_EQ(violation(), "stages: stages 2 % virtual_stages 3 = 2, must be 0");
}

TEST_F(PlacementCheck, NamesTreatmentsThatAreNone) {
  stage(1).zero.stage = 4;
  EXPECT_EQ(violation(), "stages/1/zero/stage: 4 is not in [0, 3]");
  stage(1).zero = {.stage = 1, .shard_ranks = 3};
  EXPECT_EQ(violation(), "stages/1/zero/shard_ranks: data 4 × context 1 = 4 % shard_ranks 3 = 1, must be 0");
  stage(1).zero = {.stage = 1, .kept_units = 1};
  EXPECT_EQ(violation(), "stages/1/zero/kept_units: 1 is not in [0, 0]");
  stage(1).zero = {.stage = 1};
  stage(1).offload.optimizer = {OffloadDevice::cpu, 9};
  EXPECT_EQ(violation(), "stages/1/offload/optimizer/eighths: 9 is not in [0, 8]");
  stage(1).offload.optimizer = {OffloadDevice::cpu, 0};
  EXPECT_EQ(violation(), "stages/1/offload/optimizer: 0 eighths to device cpu");
  stage(1).offload.optimizer = {OffloadDevice::nvme, 8};
  EXPECT_EQ(violation(), "");
  inputs_.cluster.groups[0].node.nvme_bytes = 0;
  EXPECT_EQ(violation(), "stages/1/offload/optimizer/device: node dgx-a100-80gb has no NVMe storage");
  stage(1).offload = {.delayed_update = true};
  EXPECT_EQ(
      violation(),
      "stages/1/offload/delayed_update: an update can only be delayed where the optimizer is offloaded");
}

TEST_F(PlacementCheck, NamesRecomputationThatDoesNotCoverTheStage) {
  stage(0).recomputation = {{.layers = 4, .mode = Recomputation::full}};
  EXPECT_EQ(violation(), "stages/0/recomputation: names 4 layers, the stage's units [0, 13) touch 6");
  stage(0).recomputation = {{.layers = 0, .mode = Recomputation::full}};
  EXPECT_EQ(violation(), "stages/0/recomputation: 0 is not in [1, 12]");
  stage(0).recomputation = {{.layers = 6, .mode = Recomputation::full, .modules = 1}};
  EXPECT_EQ(violation(), "stages/0/recomputation: modules are named for mode full");
}

TEST_F(PlacementCheck, NamesModulesThatDoNotFitTheirStage) {
  stage(0).modules.attention_tensor = 3;
  EXPECT_EQ(violation(), "stages/0/modules/attention_tensor: 3 is not in [0, tensor 2]");
  stage(0).modules.attention_tensor = 2;
  EXPECT_EQ(violation(), "stages/0/modules/attention_tensor: 2 is the stage's own degree");
  stage(0).modules.attention_tensor = 0;
  stage(1).modules.output_mode = OutputLayerMode::token_parallel;
  EXPECT_EQ(violation(),
            "stages/1/modules/output_tensor: a token-parallel output layer holds the whole table");
  stage(1).modules.output_tensor = 1;
  EXPECT_EQ(violation(), "");
}

TEST_F(PlacementCheck, NamesSequencesThatDoNotSplit) {
  inputs_.training.sequence_length = 1023;
  placement_.sequence_parallel = true;
  EXPECT_EQ(violation(),
            "stages/0/mesh/tensor: sequence parallel: sequence_length 1023 % (context 1 × tensor 2) = 1, "
            "must be 0 (stages 0, 1)");
  placement_ = regular_placement({.context = 4, .data = 4, .accumulation = 16}, 12);
  EXPECT_EQ(violation(), "stages/0/mesh/context: sequence_length 1023 % (2 × context 4) = 7, must be 0");
}

TEST_F(PlacementCheck, NamesExpertsThatDoNotFit) {
  for_all_stages([](PipelineStage& each) { each.mesh.expert = 4; });
  EXPECT_EQ(violation(),
            "stages/0/mesh/expert: expert 4 × expert_tensor 1 for a model without experts "
            "(stages 0, 1)");
  inputs_.model.mixture = MixtureSpec{.experts = 6, .top_k = 2, .expert_hidden = 3072};
  EXPECT_EQ(violation(), "stages/0/mesh/expert: experts 6 % expert 4 = 2, must be 0 (stages 0, 1)");
  inputs_.model.mixture->experts = 8;
  EXPECT_EQ(violation(), "");
  for_all_stages([](PipelineStage& each) { each.mesh.expert_tensor = 4; });
  EXPECT_EQ(violation(),
            "stages/0/mesh/expert: tensor 2 × context 1 × data 4 = 8 % (expert 4 × expert_tensor 4) = 8, "
            "must be 0 (stages 0, 1)");
}

TEST_F(PlacementCheck, SaysOnceWhatSeveralStagesHaveInCommon) {
  placement_ = regular_placement({.pipeline = 10, .data = 4, .accumulation = 16}, 40);
  for (PipelineStage& stage : placement_.stages) stage.zero.stage = 4;
  const auto of_zero = [this] {
    std::vector<std::string> messages;
    for (const PlacementViolation& violation :
         placement_violations(placement_, inputs_.model, inputs_.cluster, inputs_.training))
      if (violation.field == "stages/0/zero/stage") messages.push_back(violation.message);
    return messages;
  };
  EXPECT_EQ(of_zero(), std::vector<std::string>{"4 is not in [0, 3] (stages 0 to 9)"});
  placement_.stages[1].zero.stage = 0;
  EXPECT_EQ(of_zero(),
            std::vector<std::string>{"4 is not in [0, 3] (stages 0, 2, 3, 4, 5, 6, 7, 8, … (9 in all))"});
}

TEST_F(PlacementCheck, NamesOrderAndGroupsThatAreNone) {
  stage(0).mesh.order = {MeshAxis::tensor, MeshAxis::tensor, MeshAxis::data, MeshAxis::pipeline};
  EXPECT_EQ(violation(), "stages/0/mesh/order: tp-tp-dp-pp names an axis twice");
  stage(0).mesh.order = default_axis_order;
  stage(0).device_group = 1;
  EXPECT_EQ(violation(), "stages/0/device_group: 1 is not in [0, 0]");
}

TEST_F(PlacementCheck, SurvivesNonsenseInEveryNumber) {
  constexpr std::int64_t extremes[] = {-1, 0, 1, 7, std::int64_t{1} << 40, INT64_MAX, INT64_MIN};
  for (const std::int64_t value : extremes) {
    const auto try_with = [&](auto edit) {
      placement_ = sample_plan().placement;
      edit(placement_);
      violation();
    };
    try_with([&](Placement& p) { p.micro_batch = value; });
    try_with([&](Placement& p) { p.accumulation = value; });
    try_with([&](Placement& p) { p.virtual_stages = value; });
    try_with([&](Placement& p) { p.micro_batch_group = value; });
    try_with([&](Placement& p) { p.stages.clear(); });
    for (auto member : {&StageMesh::tensor, &StageMesh::context, &StageMesh::data, &StageMesh::expert})
      try_with([&](Placement& p) { p.stages[1].mesh.*member = value; });
    for (auto member : {&DeviceSet::first, &DeviceSet::block, &DeviceSet::stride, &DeviceSet::blocks})
      try_with([&](Placement& p) { p.stages[1].devices.*member = value; });
    try_with([&](Placement& p) { p.stages[1].units.first = value; });
    try_with([&](Placement& p) { p.stages[1].units.end = value; });
    try_with([&](Placement& p) { p.stages[1].pipeline_rank = value; });
    try_with([&](Placement& p) { p.stages[1].device_group = value; });
    try_with([&](Placement& p) { p.stages[1].zero.shard_ranks = value; });
    try_with([&](Placement& p) { p.stages[1].recomputation = {{.layers = value}}; });
    try_with([&](Placement& p) { p.replica_shares = {{.replicas = value, .micro_batches = value}}; });
  }
}

TEST_F(PlacementCheck, LeadsDiagnosticsWithTheField) {
  stage(1).zero.stage = 4;
  const Diagnostics diagnostics =
      check_placement(placement_, inputs_.model, inputs_.cluster, inputs_.training, {"plan.json", 3, 4});
  ASSERT_EQ(diagnostics.entries().size(), 1U);
  EXPECT_EQ(diagnostics.entries()[0].message, "placement/stages/1/zero/stage: 4 is not in [0, 3]");
  EXPECT_EQ(diagnostics.entries()[0].position.line, 3);
}

}  // namespace
}  // namespace specs
