// Each rule where it fires and where it does not.
#include "planner/plan/advice.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/communication_environment.h"
#include "planner/plan/price_placement.h"
#include "specs/language/read_experiment.h"

namespace planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

specs::Experiment experiment_of(std::vector<std::string> settings) {
  const auto experiment = specs::read_experiment("examples/gpt3-175b.toml", settings);
  EXPECT_TRUE(experiment.ok()) << experiment.diagnostics.render();
  return *experiment;
}

/// 64 nodes, tensor 8 and micro-batch 1, so that one placement is left; `settings` come last.
specs::Plan plan_of(std::vector<std::string> settings, const std::string& pipeline = "8") {
  std::vector<std::string> all{"cluster.nodes=64",
                               "search.tensor=[8]",
                               "search.context=[1]",
                               "search.pipeline=[" + pipeline + "]",
                               "search.micro_batch=[1]",
                               "search.schedule=[\"1f1b\"]",
                               "search.sequence_parallel=[true]",
                               "search.recomputation=[\"full\"]"};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto priced = price_best_completion(experiment_of(all));
  EXPECT_TRUE(priced.ok()) << priced.diagnostics.render();
  return priced->plan;
}

const specs::Advice* find(const std::vector<specs::Advice>& advice, std::string_view rule) {
  const auto found = std::find_if(advice.begin(), advice.end(),
                                  [&](const specs::Advice& entry) { return entry.rule == rule; });
  return found == advice.end() ? nullptr : &*found;
}

/// The plan has the advice, with a reason and a source; nothing: it has not.
std::string message_of(const specs::Plan& plan, std::string_view rule) {
  const specs::Advice* advice = find(plan.advice, rule);
  if (advice == nullptr) return {};
  EXPECT_FALSE(advice->reason.empty()) << rule;
  EXPECT_FALSE(advice->source.empty()) << rule;
  return advice->message + ": " + advice->reason;
}

TEST(Advice, MixedGenerationsAreNamedWhereThereAreTwo) {
  const specs::Plan plan = plan_of({});
  specs::Experiment mixed = plan.inputs;
  mixed.cluster.groups.push_back(experiment_of({"cluster.node=dgx-h100"}).cluster.groups.front());
  EXPECT_NE(find(advice_on(mixed, plan.placement, plan.prediction), "mixed-generations"), nullptr);
  mixed.cluster.groups.back() = mixed.cluster.groups.front();
  EXPECT_EQ(find(advice_on(mixed, plan.placement, plan.prediction), "mixed-generations"), nullptr);
}

TEST(Advice, AModelAboveFiftyBillionWithoutAPipeline) {
  EXPECT_THAT(message_of(plan_of({}, "1"), "large-model-without-pipeline"), HasSubstr("175 B"));
  EXPECT_EQ(message_of(plan_of({}, "8"), "large-model-without-pipeline"), "");
  EXPECT_EQ(message_of(plan_of({"model.preset=llama2-13b", "search.tensor=[8]"}, "1"),
                       "large-model-without-pipeline"),
            "");
}

TEST(Advice, ZeroThreeOverEthernetButNotOverInfiniBandAndNotWithZeroOne) {
  const std::string rule = "zero-3-over-ethernet";
  const std::vector<std::string> zero_3{"training.stack=fsdp2",   "search.zero_stage=[3]",
                                        "search.schedule=[]",     "search.sequence_parallel=[]",
                                        "model.preset=llama2-7b", "training.sequence_length=2048",
                                        "search.tensor=[1]"};
  auto over = [&](const std::string& network) {
    std::vector<std::string> settings = zero_3;
    settings.push_back("cluster.network=" + network);
    return settings;
  };
  EXPECT_THAT(message_of(plan_of(over("ethernet-25g"), "1"), rule), HasSubstr("ZeRO 3"));
  EXPECT_EQ(message_of(plan_of(over("ib-hdr-8x200"), "1"), rule), "");
  EXPECT_EQ(message_of(plan_of({"cluster.network=ethernet-25g", "search.zero_stage=[1]"}), rule), "");
}

TEST(Advice, SmallGradientsTravelTogetherWhereTheyCrossANetwork) {
  // 12,288 × 4 bytes; two norms with bias and four vectors of biases in each of 96 layers.
  EXPECT_THAT(message_of(plan_of({}), "small-tensors-together"),
              HasSubstr("768 norms and biases of 48.0 KiB"));
  EXPECT_THAT(message_of(plan_of({}), "small-tensors-together"), HasSubstr("128 KiB"));
  EXPECT_EQ(message_of(plan_of({"search.data=[1]"}, "64"), "small-tensors-together"), "") << "no replicas";
  EXPECT_EQ(message_of(plan_of({"model.hidden=49152", "model.heads=96", "model.head_dim=128"}),
                       "small-tensors-together"),
            "")
      << "a vector is larger than a message";
}

TEST(Advice, ACheckpointAboveThreeHundredGigabytesOnNfs) {
  const std::string rule = "large-checkpoint-on-nfs";
  EXPECT_THAT(message_of(plan_of({"cluster.storage=nfs"}), rule), HasSubstr("Lustre takes"));
  EXPECT_EQ(message_of(plan_of({"cluster.storage=lustre"}), rule), "");
  EXPECT_EQ(message_of(plan_of({"cluster.storage=nfs", "model.preset=llama2-13b"}), rule), "")
      << "13 B parameters with their states are 156 GB";
}

TEST(Advice, FortyGigabyteCardsForAHundredAndSeventyFiveBillion) {
  const std::string rule = "small-devices-for-a-large-model";
  EXPECT_THAT(message_of(plan_of({"cluster.node=dgx-a100-40gb"}), rule), HasSubstr("175 B"));
  EXPECT_EQ(message_of(plan_of({"cluster.node=dgx-a100-80gb"}), rule), "");
  EXPECT_EQ(message_of(plan_of({"cluster.node=dgx-a100-40gb", "model.preset=llama2-13b"}), rule), "");
}

std::vector<std::string> environment_of(const std::string& network, std::int64_t nodes) {
  const specs::Experiment experiment = experiment_of({"cluster.network=" + network});
  std::vector<std::string> settings;
  for (const specs::EnvironmentSetting& setting : communication_environment(experiment.cluster, nodes)) {
    EXPECT_THAT(setting.reason, HasSubstr("nodes over TCP")) << setting.name;
    settings.push_back(setting.name + "=" + setting.value);
  }
  return settings;
}

TEST(CommunicationEnvironment, TreesOverSocketsAndMoreSocketsAboveThirtyTwoNodes) {
  EXPECT_THAT(environment_of("ethernet-100g", 32), ElementsAre("NCCL_ALGO=Tree"));
  EXPECT_THAT(environment_of("ethernet-100g", 33),
              ElementsAre("NCCL_ALGO=Tree", "NCCL_SOCKET_NTHREADS=8", "NCCL_NSOCKS_PERTHREAD=4"));
}

TEST(CommunicationEnvironment, NothingWithinANodeAndNothingOverRdma) {
  EXPECT_THAT(environment_of("ethernet-100g", 1), IsEmpty());
  EXPECT_THAT(environment_of("ib-hdr-8x200", 128), IsEmpty());
  EXPECT_THAT(environment_of("roce-8x200", 128), IsEmpty());
}

}  // namespace
}  // namespace planner
