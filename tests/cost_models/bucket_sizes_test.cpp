#include "cost_models/bucket_sizes.h"

#include <gtest/gtest.h>

#include "cost_models/stage_cost.h"
#include "specs/language/catalog.h"
#include "tests/cost_models/model_fixtures.h"

namespace cost_models {
namespace {

using testing::experiment;
using testing::gpt;
using testing::llama;

specs::StackSpec stack(const std::string& name) { return *specs::catalog_stack(name); }

specs::BucketSizes sizes(const specs::Experiment& run, std::int64_t data, std::int64_t context = 1) {
  specs::RegularPlacement placement;
  placement.data = data;
  placement.context = context;
  return bucket_sizes(run, stack(run.training.stack), placement);
}

specs::Experiment run_of(const std::string& name) {
  return experiment(llama(32, 4096, 32, 32, 11008, 32000), 1, 64, 4096, name);
}

// max(40 M, 1 M a replica) parameters: gradients in fp32, parameters in bf16.
TEST(BucketSizes, GrowWithTheReplicasOfMegatronCore) {
  const specs::Experiment run = run_of("megatron-core");
  EXPECT_EQ(sizes(run, 8).gradient_bucket_bytes, 160'000'000);
  EXPECT_EQ(sizes(run, 8).gather_bucket_bytes, 80'000'000);
  EXPECT_EQ(sizes(run, 40).gradient_bucket_bytes, 160'000'000);
  EXPECT_EQ(sizes(run, 32, 2).gradient_bucket_bytes, 256'000'000);
  EXPECT_EQ(sizes(run, 12500).gather_bucket_bytes, 25'000'000'000);
}

TEST(BucketSizes, HoldAsManyGradientsAsTheirPrecisionLeavesRoomFor) {
  specs::Experiment run = run_of("megatron-core");
  run.training.reduction_precision = specs::Precision::bf16;
  EXPECT_EQ(sizes(run, 8).gradient_bucket_bytes, 80'000'000);
  run.training.precision = specs::Precision::fp32;
  EXPECT_EQ(sizes(run, 8).gradient_bucket_bytes, 160'000'000);
  EXPECT_EQ(sizes(run, 8).gather_bucket_bytes, 160'000'000);
}

TEST(BucketSizes, AreTheDefaultsOfTheOtherStacks) {
  EXPECT_EQ(sizes(run_of("nemo"), 8).gather_bucket_bytes, 2 * (std::int64_t{128} << 20));
  EXPECT_EQ(sizes(run_of("deepspeed"), 8).gather_bucket_bytes, 1'000'000'000);
  EXPECT_EQ(sizes(run_of("colossalai"), 8).gather_bucket_bytes, 2 * (std::int64_t{12} << 20));
  EXPECT_EQ(sizes(run_of("torchtitan"), 8).gradient_bucket_bytes, std::int64_t{100} << 20);
  EXPECT_EQ(sizes(run_of("dsrun"), 8).gradient_bucket_bytes, std::int64_t{25} << 20);
  EXPECT_EQ(sizes(run_of("dsrun"), 8).gather_bucket_bytes, std::int64_t{25} << 20);
  EXPECT_EQ(sizes(run_of("megatron-2021"), 8), specs::BucketSizes{});
}

// 4 h² of attention, 3 h f of the gated FFN, two norms.
TEST(BucketSizes, AreOneLayerWhereTheStackShardsByLayer) {
  const std::int64_t layer = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096;
  EXPECT_EQ(sizes(run_of("fsdp2"), 8).gather_bucket_bytes, 2 * layer);
  EXPECT_EQ(sizes(run_of("fsdp2"), 8).gradient_bucket_bytes, 4 * layer);
  EXPECT_EQ(sizes(run_of("torchtitan"), 8).gather_bucket_bytes, 2 * layer);
}

TEST(BucketSizes, FollowTheRecipeWhereItNamesThem) {
  specs::Experiment run = run_of("deepspeed");
  run.training.gradient_bucket_elements = 200'000'000;
  run.training.gather_bucket_elements = 50'000'000;
  EXPECT_EQ(sizes(run, 8).gradient_bucket_bytes, 800'000'000);
  EXPECT_EQ(sizes(run, 8).gather_bucket_bytes, 100'000'000);
}

TEST(BucketSizes, AreNoneForOneReplica) {
  for (const std::string& name : specs::catalog_names(specs::CatalogKind::stack))
    EXPECT_EQ(sizes(run_of(name), 1), specs::BucketSizes{}) << name;
}

TEST(BucketSizes, StandInEachProfileOnceWithTheirSource) {
  for (const std::string& name : specs::catalog_names(specs::CatalogKind::stack))
    for (const specs::StackBucket& rule : {stack(name).gradient_bucket, stack(name).gather_bucket}) {
      EXPECT_LE((rule.bytes > 0) + (rule.elements > 0) + rule.layer, 1) << name;
      EXPECT_TRUE(rule == specs::StackBucket{} || !rule.source.empty()) << name;
    }
}

// Each message pays the latency of its group, gradients as they travel in fp32 (4 bytes), parameters in bf16.
TEST(BucketSizes, SetHowManyMessagesTheEndOfAStepPaysFor) {
  const CostInputs inputs = make_cost_inputs(run_of("megatron-core"), stack_profile("megatron-core", {}),
                                             ConstantTable::built_in());
  RankParameters parameters;
  parameters.dense = 1'000'000'000;
  ShardKey shards;
  shards.data = 64;
  shards.zero.stage = 1;
  const auto end = [&](double gradient_bytes, double gather_bytes) {
    shards.gradient_bucket_bytes = gradient_bytes;
    shards.gather_bucket_bytes = gather_bytes;
    return step_end_seconds(inputs, parameters, shards);
  };
  const StepEndSeconds one = end(0, 0);
  const StepEndSeconds many = end(4e8, 4e8);
  const double latency = (many.gradient_reduction - one.gradient_reduction) / 9;
  EXPECT_GT(latency, 0);
  EXPECT_NEAR(many.parameter_gather - one.parameter_gather, 4 * latency, 1e-12);
  EXPECT_EQ(end(1e10, 1e10).total(), one.total());
}

}  // namespace
}  // namespace cost_models
